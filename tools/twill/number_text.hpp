// number_text: numbers in the words and columns of `twill`'s views. Pure.
#pragma once

#include <string>

namespace twill::tools {

/// As printf() writes it; the text has at most 95 characters.
std::string shown(const char* form, double a, double b = 0);

/// Without decimals.
std::string whole(double number);

/// 0 where there is nothing to have a part of.
double share(double part, double of);

/// "[###.......]  30 %" of 0.3. Another server may send NaN or an infinity: a bar is drawn of all.
std::string bar_of(double part);

} // namespace twill::tools
