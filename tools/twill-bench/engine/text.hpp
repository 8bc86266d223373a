// text: formats numbers for people. The functions are pure.
#pragma once

#include <array>
#include <cstdio>
#include <ctime>
#include <string>

namespace twill::bench {

/// `value` with this many digits after the decimal point.
inline std::string fixed(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

/// "45 s", "12 min", "3 h 05 min"
inline std::string duration_text(double seconds) {
  if (seconds < 100) return fixed(seconds, 0) + " s";
  const auto minutes = static_cast<long>(seconds / 60 + 0.5);
  if (minutes < 100) return std::to_string(minutes) + " min";
  const std::string rest = std::to_string(minutes % 60);
  return std::to_string(minutes / 60) + " h " + (rest.size() < 2 ? "0" : "") + rest + " min";
}

/// Local time as YYYYMMDD-HHMMSS.
inline std::string date_text() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  std::array<char, 32> date{};
  std::strftime(date.data(), date.size(), "%Y%m%d-%H%M%S", localtime_r(&now, &local));
  return date.data();
}

} // namespace twill::bench
