// call_grammar: the grammar of an answer that must be tool calls, as the model's format writes
// them.
//
// For tool_choice "required" and for a named function: what the parser of the same format reads
// back is a call of one of the tools, and its arguments satisfy that tool's schema. Pure; any
// thread.
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

/// `parallel`: more than one call may stand, where the format has room for it. Nothing for formats
/// that cannot hold the names of these functions.
std::optional<config::grammar_spec> call_grammar(const tool_format& format,
                                                 std::span<const callable> tools, bool parallel);

} // namespace twill::models::tool_calls
