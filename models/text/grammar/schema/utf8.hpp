// utf8: converts between UTF-8 and code points, for regular expressions and schemas. The functions
// are pure; any thread may call them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/grammar/schema/code_points.hpp"

namespace twill::models::grammar {

/// The code points of `text`. A byte that is not part of a valid character becomes U+FFFD.
std::vector<std::uint32_t> code_points_of(std::string_view text);

void append_utf8(std::string& out, std::uint32_t code_point);

/// Code points of a Unicode general category ("L", "Lu", "Letter"); empty when the name is unknown.
code_points code_points_of_category(const std::string& name);

} // namespace twill::models::grammar
