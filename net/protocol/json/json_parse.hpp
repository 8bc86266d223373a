// parse_json: request text to a value tree. Boost.JSON stays behind this function. Any thread.
//
// Strict JSON (RFC 8259): no comments, NaN or Infinity; valid UTF-8; at most 64 levels and two
// million values; numbers must be in the range of a double; of duplicate keys the last wins. Whole
// numbers keep their digits, others become the nearest double, as in Python. The error names byte,
// line and column.
#pragma once

#include <string_view>

#include "config/base/value.hpp"
#include "net/api_error.hpp"

namespace twill::net {

result<value> parse_json(std::string_view text);

/// Of a text that this server wrote around values of what clients sent: with 128 levels and any
/// number of values, so that all that parse_json() has taken can be read again.
result<value> parse_own_json(std::string_view text);

} // namespace twill::net
