#include "models/text/tool_calls/tool_text.hpp"

#include "config/base/json_text.hpp"

namespace twill::models::tool_calls {
namespace {

/// Returns a description of what a call looks like, and of how one answer can hold several calls.
std::string call_pattern(const tool_format& format) {
  const std::string object = R"({"name": "NAME", "arguments": {...}})";
  switch (format.syntax) {
  case call_syntax::tagged_json:
    return format.begin + "\n" + object + "\n" + format.end + "\nonce for each call";
  case call_syntax::listed_json:
    return format.begin + " [" + object + "]\nwith one object for each call";
  case call_syntax::chatglm3:
    return "NAME\n```python\ntool_call(argument=value)\n```";
  case call_syntax::bare_json:
    break;
  }
  if (format.name == "llama3_json")
    return R"({"name": "NAME", "parameters": {...}})"
           "\nand for several calls with such objects apart by ;";
  return object + "\nor, for several calls, with a list of such objects";
}

} // namespace

std::string tool_text(const value& tools, const tool_format& format) {
  const auto* list = tools.as_list();
  if (list == nullptr || list->empty()) return {};
  std::string text =
      "You can call functions. Each of the next lines describes one: its name, what it "
      "does, and the JSON Schema of its arguments.\n";
  for (const value& tool : *list) {
    const value* nested = tool.find("function");
    text += to_json(nested != nullptr ? *nested : tool) + "\n";
  }
  return text + "To call a function, answer with nothing but\n" + call_pattern(format) +
         "\nWhen no function helps, answer as usual.";
}

} // namespace twill::models::tool_calls
