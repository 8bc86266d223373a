// print: writes values as Python's str(), repr() and json.dumps() do. Pure, except that the texts
// count towards the limits of the render (jinja::limits in runtime.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "models/text/jinja/runtime.hpp"
#include "models/text/jinja/value.hpp"

namespace twill::models::jinja {

/// str(v). Bytes that came from the request are marked as tainted (text.hpp). The bytes of a string
/// keep their marks. The text of any other value is tainted as a whole if any part of the value is
/// tainted.
text to_text(runtime& rt, const val& v);
/// repr(v).
text to_repr(runtime& rt, const val& v);
/// Python's repr of a float: the shortest digits that read back as the same value.
std::string float_repr(double d);

struct json_style {
  bool ensure_ascii = false;
  bool sort_keys = false;
  std::optional<std::string> indent; ///< indentation of one level
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

text to_json(runtime& rt, const val& v, const json_style& style);

} // namespace twill::models::jinja
