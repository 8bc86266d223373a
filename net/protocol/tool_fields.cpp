#include "net/protocol/tool_fields.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "net/protocol/json/members.hpp"

namespace twill::net {
namespace {

using kind = actors::tool_choice::kind;

bool is_tool_name(const std::string& name) {
  return !name.empty() && name.size() <= max_tool_name_bytes &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  std::string_view("_-.:/").find(c) != std::string_view::npos;
         });
}

/// The function's members; `at` is its path.
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

/// `functions`: tools without their wrapping.
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

} // namespace

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
      from.reject(at + ".name", "unlike the names of the other tools", value(function_name(tool)));
    read.push_back(std::move(tool));
  }
  return read;
}

void read_tool_choice(fields& from, const std::string& name, const value& given, const value& tools,
                      actors::tool_choice& to) {
  const bool any = tools.as_list() != nullptr && !tools.as_list()->empty();
  if (given == value("auto") || given == value("none")) {
    to.what = given == value("auto") ? kind::automatic : kind::none;
    return;
  }
  if (given == value("required")) {
    if (!any) from.reject(name, "\"auto\" or \"none\" without tools", given);
    to.what = kind::required;
    return;
  }
  if (given.as_object() == nullptr)
    return from.reject(name, R"("auto", "none", "required" or an object that names a function)",
                       given);
  const auto* type = member(given, "type");
  const bool is_function = type == nullptr || *type == value("function");
  if (!is_function)
    return from.reject(name + ".type", "\"function\": this server runs no tools itself", *type);
  const auto* nested = member(given, "function");
  const auto wanted = text_of(member(nested == nullptr ? given : *nested, "name"));
  if (!has_tool(tools, wanted))
    return from.reject(name, "the name of one of the tools of this request", given);
  to.what = kind::named;
  to.name = wanted;
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
  if (none || read.choice.what == kind::none) read.tools = value();
  return read;
}

} // namespace twill::net
