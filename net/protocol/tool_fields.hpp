// Reads the tools of a request, and which tools the answer may or must call. The functions are
// pure.
//
// Templates and the engine take the nested form of the Chat API,
// {"type":"function","function":{...}}. The flat form of the Responses API and the legacy member
// `functions` are converted to the nested form. Tools that the server itself would have to run
// (web_search and others) are refused by name.
#pragma once

#include <cstddef>
#include <string>

#include "actors/port/engine_port.hpp"
#include "net/protocol/field_table.hpp"

namespace twill::net {

inline constexpr std::size_t max_tools = 128;
inline constexpr std::size_t max_tool_name_bytes = 128;

struct tool_fields {
  value tools; ///< a list in the Chat API's form, or null if the model is to see no tools
  actors::tool_choice choice;
  bool legacy = false; ///< the request used `functions`, so the reply has `function_call`
};

/// Reads `tools`, `tool_choice`, `parallel_tool_calls`, `functions` and `function_call`.
tool_fields read_tools(fields& from);
void add_tool_rows(field_rows& to);

/// Reads a list of tools alone, for APIs that have it elsewhere.
value read_tool_list(fields& from, const std::string& name, const value& given);
/// Reads a choice among `tools`. If the choice is `allowed_tools`, removes from `tools` every tool
/// that the choice does not list.
void read_tool_choice(fields& from, const std::string& name, const value& given, value& tools,
                      actors::tool_choice& to);

} // namespace twill::net
