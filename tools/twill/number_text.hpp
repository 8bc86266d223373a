// number_text: formats the numbers in the texts and tables of `twill`. The functions are pure.
#pragma once

#include <string>

namespace twill::tools {

/// Formats with printf(); the text is cut to 95 characters.
std::string shown(const char* form, double a, double b = 0);

/// The number without decimals.
std::string whole(double number);

/// `part` divided by `of`; 0 when `of` is 0 or less.
double share(double part, double of);

/// Draws the fraction 0.3 as "[###.......]  30 %". The fraction may be NaN or infinite, because it
/// can come from any server.
std::string bar_of(double part);

} // namespace twill::tools
