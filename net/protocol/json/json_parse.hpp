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

} // namespace twill::net
