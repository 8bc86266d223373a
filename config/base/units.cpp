#include "config/base/units.hpp"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <span>
#include <string>

namespace twill {
namespace {

struct unit {
  std::string_view name;
  double factor;
};

constexpr std::array<unit, 14> units{{{"", 1},
                                      {"b", 1},
                                      {"k", 1024.0},
                                      {"m", 1024.0 * 1024},
                                      {"g", 1024.0 * 1024 * 1024},
                                      {"t", 1024.0 * 1024 * 1024 * 1024},
                                      {"kib", 1024.0},
                                      {"mib", 1024.0 * 1024},
                                      {"gib", 1024.0 * 1024 * 1024},
                                      {"tib", 1024.0 * 1024 * 1024 * 1024},
                                      {"kb", 1e3},
                                      {"mb", 1e6},
                                      {"gb", 1e9},
                                      {"tb", 1e12}}};

constexpr std::array<unit, 5> time_units{
    {{"ms", 1}, {"s", 1e3}, {"m", 60e3}, {"min", 60e3}, {"h", 3600e3}}};

/// Parses "NUMBER UNIT" and multiplies by the unit's factor; nullopt if the number is negative or
/// infinite, or the text has another form.
std::optional<double> parse_scaled(std::string_view text, std::span<const unit> units) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_space(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && is_space(text.back()))
    text.remove_suffix(1);
  double number = 0;
  const auto [rest, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc{} || !std::isfinite(number) || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  while (!text.empty() && is_space(text.front()))
    text.remove_prefix(1);
  std::string suffix;
  for (char c : text)
    suffix += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const auto& u : units)
    if (u.name == suffix) return number * u.factor;
  return std::nullopt;
}

} // namespace

std::optional<std::int64_t> parse_bytes(std::string_view text) {
  const auto bytes = parse_scaled(text, units);
  if (!bytes.has_value() || *bytes >= 9.2e18) return std::nullopt;
  return static_cast<std::int64_t>(*bytes);
}

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  constexpr double hundred_years = 100 * 366 * 24 * 3600e3;
  const auto time = parse_scaled(text, time_units);
  if (!time.has_value() || *time > hundred_years) return std::nullopt;
  return std::chrono::milliseconds(static_cast<std::int64_t>(*time));
}

std::string format_bytes(std::int64_t bytes) {
  constexpr std::array<const char*, 5> names{"B", "KiB", "MiB", "GiB", "TiB"};
  double scaled = static_cast<double>(bytes);
  std::size_t index = 0;
  while (std::abs(scaled) >= 1024 && index + 1 < names.size()) {
    scaled /= 1024;
    ++index;
  }
  char text[32];
  const int places = index == 0 || std::abs(scaled) >= 100 ? 0 : std::abs(scaled) >= 10 ? 1 : 2;
  std::snprintf(text, sizeof text, "%.*f %s", places, scaled, names[index]);
  return text;
}

} // namespace twill
