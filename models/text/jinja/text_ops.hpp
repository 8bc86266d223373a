// text_ops: Python's string operations on tainted text; methods and filters share them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "models/text/jinja/runtime.hpp"
#include "models/text/jinja/text.hpp"

namespace twill::models::jinja {

enum class sides { left, right, both };

/// Strips the characters `chars`, or white space when there are none.
text strip(const text& t, const text* chars, sides which);
/// Makes at most `most` replacements; all when it is negative.
text replace(runtime& rt, const text& t, const text& from, const text& to, std::int64_t most);
/// str.split(sep, maxsplit) or str.rsplit; without `separator` it cuts at runs of white space.
std::vector<text> split(runtime& rt, const text& t, const text* separator, std::int64_t most,
                        bool from_right);
std::vector<text> split_lines(const text& t, bool keep_ends);
text join(runtime& rt, const text& separator, const std::vector<text>& parts);
text with_case(const text& t, bool upper);
text capitalize(const text& t);
/// str.title(): a letter after anything that is no letter becomes upper case.
text title(const text& t);
/// Jinja's title filter: words begin after white space, - ( { [ <.
text title_words(const text& t);
/// Pads to `width` characters; `where` is -1 for text on the left, 0 centred, 1 on the right.
text pad(runtime& rt, const text& t, std::int64_t width, std::string_view fill, int where);
/// True when there is a cased character and every one has this case.
bool has_case(const text& t, bool upper);
/// The character position of byte position `at`.
std::int64_t character_position(const text& t, std::size_t at);

} // namespace twill::models::jinja
