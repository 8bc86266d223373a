// text_ops: Python's string operations on tainted text; methods and filters share them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "models/text/template/runtime.hpp"
#include "models/text/template/text.hpp"

namespace twill::models::jinja {

enum class sides { left, right, both };

/// Without `chars`: white space.
text strip(const text& t, const text* chars, sides which);
/// At most `most` replacements; negative: all.
text replace(runtime& rt, const text& t, const text& from, const text& to, std::int64_t most);
/// str.split(sep, maxsplit) or str.rsplit; no `separator`: runs of white space.
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
/// Pads to `width` characters; where: -1 text left, 0 centre, 1 text right.
text pad(runtime& rt, const text& t, std::int64_t width, std::string_view fill, int where);
/// True when there is a cased character and every one has this case.
bool has_case(const text& t, bool upper);
/// Character position of byte position `at`.
std::int64_t character_position(const text& t, std::size_t at);

} // namespace twill::models::jinja
