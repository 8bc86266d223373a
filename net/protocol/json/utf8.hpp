// UTF-8 checks according to RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. The
// functions are pure.
#pragma once

#include <cstddef>
#include <string_view>

namespace twill::net {

/// Length of the well-formed sequence at the start of `text` (not empty); 0 when it is ill-formed.
std::size_t utf8_sequence_length(std::string_view text) noexcept;

/// Offset of the first ill-formed byte, or npos.
std::size_t find_invalid_utf8(std::string_view text) noexcept;

} // namespace twill::net
