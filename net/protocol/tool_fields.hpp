// Reading the tools of a request, and which of them the answer may or must call. Pure.
//
// Chat's nested form {"type":"function","function":{...}} is what templates and the engine take;
// the flat form of the Responses API and the legacy `functions` become it. Tools that a server
// would have to run itself (web_search and the like) are refused by name.
#pragma once

#include <cstddef>
#include <string>

#include "actors/port/engine_port.hpp"
#include "net/protocol/field_table.hpp"

namespace twill::net {

inline constexpr std::size_t max_tools = 128;
inline constexpr std::size_t max_tool_name_bytes = 128;

struct tool_fields {
  value tools; ///< a list in chat's form, or null when the model shall not see any
  actors::tool_choice choice;
  bool legacy = false; ///< asked for by `functions`: the reply has `function_call`
};

/// `tools`, `tool_choice`, `parallel_tool_calls`, `functions`, `function_call`.
tool_fields read_tools(fields& from);
void add_tool_rows(field_rows& to);

/// The parts of it, for tools and choices that come from elsewhere.
value read_tool_list(fields& from, const std::string& name, const value& given);
/// Takes out of `tools` what a choice of allowed_tools leaves out.
void read_tool_choice(fields& from, const std::string& name, const value& given, value& tools,
                      actors::tool_choice& to);

} // namespace twill::net
