#include "config/base/float_text.hpp"

#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <string_view>

namespace twill {

std::string float_text(double d) {
  char buffer[32];
  // The shortest digits come as d.ddde±xx; Python writes exponents from -4 to 15 without e.
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, d, std::chars_format::scientific);
  const std::string_view all(buffer, static_cast<std::size_t>(end.ptr - buffer));
  const std::size_t e = all.find('e');
  std::string_view mantissa = all.substr(0, e);
  const int exponent = std::atoi(std::string(all.substr(e + 1)).c_str());
  std::string out;
  if (mantissa.front() == '-') out = "-", mantissa.remove_prefix(1);
  std::string digits(1, mantissa.front());
  if (mantissa.size() > 2) digits += mantissa.substr(2);
  const int n = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    out += digits.substr(0, 1);
    if (n > 1) (out += ".") += digits.substr(1);
    const int size = std::abs(exponent);
    out += exponent < 0 ? "e-" : "e+";
    if (size < 10) out += "0";
    return out += std::to_string(size);
  }
  if (exponent < 0)
    return out + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  if (n <= exponent + 1)
    return out + digits + std::string(static_cast<std::size_t>(exponent + 1 - n), '0') + ".0";
  const auto point = static_cast<std::size_t>(exponent) + 1;
  return out + digits.substr(0, point) + "." + digits.substr(point);
}

} // namespace twill
