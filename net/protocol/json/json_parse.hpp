// parse_json: parses request text into a tree of values. Callers do not see Boost.JSON. Any thread
// may call it.
//
// Accepts strict JSON (RFC 8259): no comments, NaN or Infinity; valid UTF-8; at most 64 levels and
// two million values. Numbers must be in the range of a double. If an object has a key twice, the
// last value wins. Whole numbers keep all their digits; other numbers become the nearest double, as
// in Python. Errors state the byte, line and column.
#pragma once

#include <string_view>

#include "config/base/value.hpp"
#include "net/api_error.hpp"

namespace twill::net {

result<value> parse_json(std::string_view text);

/// Parses text that this server wrote and that contains values which clients sent. Accepts 128
/// levels and any number of values, so that everything that parse_json() accepted can be parsed
/// again.
result<value> parse_own_json(std::string_view text);

} // namespace twill::net
