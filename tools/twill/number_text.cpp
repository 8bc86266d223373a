#include "tools/twill/number_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace twill::tools {

std::string shown(const char* form, double a, double b) {
  char text[96];
  std::snprintf(text, sizeof text, form, a, b);
  return text;
}

std::string whole(double number) {
  return shown("%.0f", number);
}

double share(double part, double of) {
  return of > 0 ? part / of : 0;
}

std::string bar_of(double part) {
  const double drawn = std::isnan(part) ? 0 : std::clamp(part, 0.0, 1.0);
  const auto filled = static_cast<std::size_t>(drawn * 10 + 0.5);
  return "[" + std::string(filled, '#') + std::string(10 - filled, '.') + "] " +
         shown("%3.0f %%", 100 * part);
}

} // namespace twill::tools
