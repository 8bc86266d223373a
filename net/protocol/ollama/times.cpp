#include "net/protocol/ollama/times.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <utility>

namespace twill::net {

reply_moment moment_now() {
  return {std::chrono::system_clock::now(), std::chrono::steady_clock::now()};
}

std::string rfc3339(std::chrono::system_clock::time_point when) {
  using namespace std::chrono;
  const auto since = duration_cast<nanoseconds>(when.time_since_epoch());
  const auto whole = floor<seconds>(since);
  const std::time_t unix_s = whole.count();
  std::tm parts{};
  gmtime_r(&unix_s, &parts);
  std::array<char, 64> text{};
  const auto n = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::array<char, 32> fraction{};
  std::snprintf(fraction.data(), fraction.size(), ".%09lldZ",
                static_cast<long long>((since - whole).count()));
  return std::string(text.data(), n) + fraction.data();
}

std::optional<double> go_seconds(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 8> units = {{{"ns", 1e-9},
                                                                         {"us", 1e-6},
                                                                         {"\u00b5s", 1e-6},
                                                                         {"\u03bcs", 1e-6},
                                                                         {"ms", 1e-3},
                                                                         {"s", 1},
                                                                         {"m", 60},
                                                                         {"h", 3600}}};
  constexpr std::size_t longest = 64;
  if (text.empty() || text.size() > longest) return std::nullopt;
  const bool negative = text.front() == '-';
  if (negative || text.front() == '+') text.remove_prefix(1);
  if (text == "0") return 0;
  if (text.empty()) return std::nullopt;
  double total = 0;
  while (!text.empty()) {
    double number = 0, place = 0; // value of the next digit after the point; 0: before the point
    std::size_t at = 0;
    bool digits = false;
    for (; at < text.size(); ++at) {
      const char c = text[at];
      if (c == '.' && place == 0) {
        place = 0.1;
      } else if (c >= '0' && c <= '9') {
        digits = true;
        if (place == 0) {
          number = number * 10 + (c - '0');
        } else {
          number += place * (c - '0');
          place /= 10;
        }
      } else {
        break;
      }
    }
    if (!digits) return std::nullopt;
    text.remove_prefix(at);
    bool known = false;
    for (const auto& [name, seconds] : units) {
      // The unit "ms" also starts with "m", so "ms" comes before "m" in the list.
      if (!text.starts_with(name)) continue;
      total += number * seconds;
      text.remove_prefix(name.size());
      known = true;
      break;
    }
    if (!known) return std::nullopt;
  }
  return negative ? -total : total;
}

} // namespace twill::net
