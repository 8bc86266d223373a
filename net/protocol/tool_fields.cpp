#include "net/protocol/tool_fields.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "net/protocol/json/members.hpp"

namespace twill::net {
namespace {

using kind = actors::tool_choice_kind;

bool is_tool_name(const std::string& name) {
  return !name.empty() && name.size() <= max_tool_name_bytes &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  std::string_view("_-.:/").find(c) != std::string_view::npos;
         });
}

/// Checks the members of a function; `at` is the path of the function in error messages.
void check_function(fields& from, const std::string& at, const value& function) {
  const auto* name = member(function, "name");
  if (name == nullptr || name->as_string() == nullptr || !is_tool_name(*name->as_string()))
    return from.reject(at + ".name",
                       "1 to " + std::to_string(max_tool_name_bytes) +
                           " letters, digits or characters of _-.:/",
                       name == nullptr ? value() : *name);
  if (const auto* v = member(function, "description"); v != nullptr && v->as_string() == nullptr)
    from.reject(at + ".description", "a string", *v);
  if (const auto* v = member(function, "parameters"); v != nullptr && v->as_object() == nullptr)
    from.reject(at + ".parameters", "a JSON Schema, an object", *v);
  if (const auto* v = member(function, "strict"); v != nullptr && v->as_bool() == nullptr)
    from.reject(at + ".strict", "true or false", *v);
}

value nested_tool(value_object function) {
  return value_object{{"type", "function"}, {"function", std::move(function)}};
}

value read_tool(fields& from, const std::string& at, const value& tool) {
  if (tool.as_object() == nullptr) {
    from.reject(at, "an object", tool);
    return {};
  }
  const auto* type = member(tool, "type");
  if (type == nullptr || *type != value("function")) {
    from.reject(at + ".type", "\"function\": this server runs no tools itself",
                type == nullptr ? value() : *type);
    return {};
  }
  if (const auto* nested = member(tool, "function")) {
    if (nested->as_object() == nullptr) {
      from.reject(at + ".function", "an object", *nested);
      return {};
    }
    check_function(from, at + ".function", *nested);
    return tool;
  }
  check_function(from, at, tool);
  value_object function;
  for (const auto& [key, v] : *tool.as_object()) {
    const bool said = !v.is_null() && key != "type" && !(key == "strict" && v == value(false));
    if (said) function.emplace_back(key, v);
  }
  return nested_tool(std::move(function));
}

std::string function_name(const value& tool) {
  const auto* function = tool.find("function");
  return function == nullptr ? std::string() : text_of(function->find("name"));
}

bool has_tool(const value& tools, const std::string& name) {
  const auto* list = tools.as_list();
  return list != nullptr && std::any_of(list->begin(), list->end(), [&](const value& tool) {
           return function_name(tool) == name;
         });
}

/// Returns the name in {"type":"function","function":{"name"}} or {"type":"function","name"}. If no
/// tool has the name, reports an error to `from` and returns an empty string.
std::string read_choice_of_function(fields& from, const std::string& name, const value& given,
                                    const value& tools) {
  const auto* type = member(given, "type");
  if (type != nullptr && *type != value("function")) {
    from.reject(name + ".type", "\"function\": this server runs no tools itself", *type);
    return {};
  }
  const auto* nested = member(given, "function");
  auto wanted = text_of(member(nested == nullptr ? given : *nested, "name"));
  if (has_tool(tools, wanted)) return wanted;
  from.reject(name, "the name of one of the tools of this request", given);
  return {};
}

/// Reads {"type":"allowed_tools", "allowed_tools":{"mode","tools"}}, or the form of the Responses
/// API with `mode` and `tools` beside `type`. Tools that may not be called are not shown to the
/// model, because with mode "auto" nothing else prevents the model from calling them.
void read_allowed_tools(fields& from, const std::string& name, const value& given, value& tools,
                        actors::tool_choice& to) {
  const auto* nested = given.find("allowed_tools");
  const auto& allowed = nested == nullptr ? given : *nested;
  const std::string at = nested == nullptr ? name : name + ".allowed_tools";
  const auto* mode = member(allowed, "mode");
  const auto* list = member(allowed, "tools");
  if (mode == nullptr || (*mode != value("auto") && *mode != value("required")))
    return from.reject(at + ".mode", R"("auto" or "required")", mode == nullptr ? value() : *mode);
  if (list == nullptr || list->as_list() == nullptr || list->as_list()->empty() ||
      list->as_list()->size() > max_tools)
    return from.reject(at + ".tools", "a list of 1 to " + std::to_string(max_tools) + " tools",
                       list == nullptr ? value() : *list);
  std::set<std::string> names;
  for (std::size_t i = 0; i < list->as_list()->size() && from.ok(); ++i)
    names.insert(read_choice_of_function(from, at + ".tools[" + std::to_string(i) + "]",
                                         (*list->as_list())[i], tools));
  if (!from.ok()) return;
  value_list kept;
  for (const auto& tool : *tools.as_list())
    if (names.contains(function_name(tool))) kept.push_back(tool);
  tools = std::move(kept);
  to.kind = *mode == value("auto") ? kind::automatic : kind::required;
}

/// Converts the legacy member `functions`, a list of functions without the {"type","function"}
/// object around each.
value read_functions(fields& from, const value& given) {
  const auto* list = given.as_list();
  if (list == nullptr) {
    from.reject("functions", "a list of functions", given);
    return {};
  }
  value_list wrapped;
  for (std::size_t i = 0; i < list->size(); ++i) {
    const auto* function = (*list)[i].as_object();
    if (function == nullptr) {
      from.reject("functions[" + std::to_string(i) + "]", "an object", (*list)[i]);
      return {};
    }
    wrapped.push_back(nested_tool(*function));
  }
  return read_tool_list(from, "functions", wrapped);
}

constexpr std::array tool_rows = {
    field_row{"tools", R"("type":"array","maxItems":128,"items":{"type":"object"})",
              "Functions that the answer may call."},
    field_row{"tool_choice", R"("type":["string","object"])",
              R"("auto", "none", "required", one function, or `allowed_tools`.)"},
    field_row{"parallel_tool_calls", schema::boolean, "False: at most one call in an answer."},
    field_row{"functions", R"("type":"array","maxItems":128,"items":{"type":"object"})",
              "Tools in OpenAI's older form."},
    field_row{"function_call", R"("type":["string","object"])",
              "The choice among `functions` in that form."}};

} // namespace

void add_tool_rows(field_rows& to) {
  add_rows(to, tool_rows);
}

value read_tool_list(fields& from, const std::string& name, const value& given) {
  const auto* list = given.as_list();
  if (list == nullptr) {
    from.reject(name, "a list of tools", given);
    return {};
  }
  if (list->size() > max_tools) {
    from.reject(name, "a list of at most " + std::to_string(max_tools) + " tools", given);
    return {};
  }
  value_list read;
  std::set<std::string> names;
  for (std::size_t i = 0; i < list->size() && from.ok(); ++i) {
    const auto at = name + "[" + std::to_string(i) + "]";
    auto tool = read_tool(from, at, (*list)[i]);
    if (from.ok() && !names.insert(function_name(tool)).second)
      from.reject(at + ((*list)[i].find("function") != nullptr ? ".function.name" : ".name"),
                  "unlike the names of the other tools", value(function_name(tool)));
    read.push_back(std::move(tool));
  }
  return read;
}

void read_tool_choice(fields& from, const std::string& name, const value& given, value& tools,
                      actors::tool_choice& to) {
  const bool any = tools.as_list() != nullptr && !tools.as_list()->empty();
  if (given == value("auto") || given == value("none")) {
    to.kind = given == value("auto") ? kind::automatic : kind::none;
    return;
  }
  if (given == value("required")) {
    if (!any) from.reject(name, "\"auto\" or \"none\" without tools", given);
    to.kind = kind::required;
    return;
  }
  if (given.as_object() == nullptr)
    return from.reject(name, R"("auto", "none", "required" or an object that names a function)",
                       given);
  const auto* type = member(given, "type");
  if (type != nullptr && *type == value("allowed_tools"))
    return read_allowed_tools(from, name, given, tools, to);
  auto wanted = read_choice_of_function(from, name, given, tools);
  if (!from.ok()) return;
  to.kind = kind::named;
  to.name = std::move(wanted);
}

tool_fields read_tools(fields& from) {
  tool_fields read;
  const auto* tools = from.find("tools");
  const auto* functions = from.find("functions");
  if (functions != nullptr) {
    if (tools != nullptr) from.reject("functions", "absent when `tools` is given", *functions);
    read.legacy = true;
    read.tools = read_functions(from, *functions);
  } else if (tools != nullptr) {
    read.tools = read_tool_list(from, "tools", *tools);
  }
  if (!from.ok()) return read;
  from.read("parallel_tool_calls", read.choice.parallel);
  if (read.legacy) read.choice.parallel = false;
  const auto* choice = from.find("tool_choice");
  const auto* legacy_choice = from.find("function_call");
  if (legacy_choice != nullptr && choice != nullptr)
    from.reject("function_call", "absent when `tool_choice` is given", *legacy_choice);
  if (choice != nullptr)
    read_tool_choice(from, "tool_choice", *choice, read.tools, read.choice);
  else if (legacy_choice != nullptr)
    read_tool_choice(from, "function_call", *legacy_choice, read.tools, read.choice);
  const bool none = read.tools.as_list() == nullptr || read.tools.as_list()->empty();
  if (none || read.choice.kind == kind::none) read.tools = value();
  return read;
}

} // namespace twill::net
