// call_grammar: the grammar of an answer that must consist of tool calls in the model's format.
//
// It is used for tool_choice "required" and for a named function. From each answer of the grammar,
// the parser of the same format reads calls of the given tools whose arguments satisfy the tools'
// schemas. The functions are pure; any thread may call them.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "config/grammar_spec.hpp"
#include "models/text/tool_calls/tool_format.hpp"

namespace twill::models::tool_calls {

struct callable {
  std::string name;
  std::string parameters; ///< JSON Schema of the arguments; empty: there are none
};

/// `parallel`: allows several calls if the format supports them. Returns none if the format cannot
/// write the names of these functions.
std::optional<config::grammar_spec> call_grammar(const tool_format& format,
                                                 std::span<const callable> tools, bool parallel);

} // namespace twill::models::tool_calls
