#include "net/protocol/anthropic/message_tools.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "net/protocol/json/members.hpp"

namespace twill::net {
namespace {

/// Converts a tool to the flat form of the Responses API, which read_tool_list() accepts.
value flat_tool(fields& from, const std::string& at, const value& tool) {
  if (tool.as_object() == nullptr) {
    from.reject(at, "an object", tool);
    return {};
  }
  const auto* type = member(tool, "type");
  if (type != nullptr && *type != value("custom")) {
    from.reject(at + ".type", "\"custom\" or absent: this server has none of Anthropic's own tools",
                *type);
    return {};
  }
  const auto* schema = member(tool, "input_schema");
  if (schema == nullptr || schema->as_object() == nullptr) {
    from.reject(at + ".input_schema", "a JSON Schema, an object",
                schema == nullptr ? value() : *schema);
    return {};
  }
  // Other callers than the model are programs that a server runs, and this server runs none.
  if (const auto* callers = member(tool, "allowed_callers")) {
    const auto* list = callers->as_list();
    if (list == nullptr || std::find(list->begin(), list->end(), value("direct")) == list->end()) {
      from.reject(at + ".allowed_callers", "a list with \"direct\", or absent", *callers);
      return {};
    }
  }
  value_object flat{{"type", "function"}};
  for (const auto* name : {"name", "description"})
    if (const auto* v = member(tool, name)) flat.emplace_back(name, *v);
  flat.emplace_back("parameters", *schema);
  for (const auto* name : {"strict", "input_examples"})
    if (const auto* v = member(tool, name)) flat.emplace_back(name, *v);
  return flat;
}

value read_tools_of_client(fields& from) {
  const auto* given = from.find("tools");
  if (given == nullptr) return {};
  const auto* list = given->as_list();
  if (list == nullptr || list->size() > max_tools) return read_tool_list(from, "tools", *given);
  value_list flat;
  for (std::size_t i = 0; i < list->size() && from.ok(); ++i)
    flat.push_back(flat_tool(from, "tools[" + std::to_string(i) + "]", (*list)[i]));
  return from.ok() ? read_tool_list(from, "tools", flat) : value();
}

bool has_tool_named(const value& tools, const std::string& name) {
  const auto* list = tools.as_list();
  return list != nullptr && std::any_of(list->begin(), list->end(), [&](const value& tool) {
           const auto* function = tool.find("function");
           return function != nullptr && text_of(function->find("name")) == name;
         });
}

void read_choice_of_tool(fields& from, const value& given, const value& tools,
                         actors::tool_choice& to) {
  using kind = actors::tool_choice_kind;
  if (given.as_object() == nullptr) return from.reject("tool_choice", "an object", given);
  fields choice(given, "tool_choice.");
  bool one_at_most = false;
  choice.read("disable_parallel_tool_use", one_at_most);
  choice.read("name", to.name);
  if (!choice.ok()) return from.reject(choice.error());
  to.parallel = !one_at_most;
  const auto type = text_of(given.find("type"));
  const bool any = tools.as_list() != nullptr && !tools.as_list()->empty();
  if (type == "auto" || type == "none") {
    to.kind = type == "auto" ? kind::automatic : kind::none;
  } else if (type == "any" && any) {
    to.kind = kind::required;
  } else if (type == "tool" && any) {
    to.kind = kind::named;
    if (!has_tool_named(tools, to.name))
      from.reject("tool_choice.name", "the name of one of the tools of this request",
                  value(to.name));
  } else {
    const auto* found = given.find("type");
    from.reject("tool_choice.type",
                any ? R"("auto", "any", "tool" or "none")" : R"("auto" or "none" without tools)",
                found == nullptr ? value() : *found);
  }
  if (to.kind != kind::named) to.name.clear();
}

} // namespace

tool_fields read_message_tools(fields& from) {
  tool_fields read;
  read.tools = read_tools_of_client(from);
  if (!from.ok()) return read;
  if (const auto* choice = from.find("tool_choice"))
    read_choice_of_tool(from, *choice, read.tools, read.choice);
  const bool none = read.tools.as_list() == nullptr || read.tools.as_list()->empty();
  if (none || read.choice.kind == actors::tool_choice_kind::none) read.tools = value();
  return read;
}

} // namespace twill::net
