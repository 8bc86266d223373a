// print: values as Python's str() and repr() and json.dumps() write them. Pure but for the budgets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "models/text/jinja/runtime.hpp"
#include "models/text/jinja/value.hpp"

namespace twill::models::jinja {

/// str(v). A string keeps its exact taint; the text of another value is wholly tainted when a part
/// is.
text to_text(runtime& rt, const val& v);
/// repr(v).
text to_repr(runtime& rt, const val& v);
/// Python's repr of a float: the shortest digits that read back the same.
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
