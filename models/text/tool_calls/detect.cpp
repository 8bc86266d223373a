#include "models/text/tool_calls/detect.hpp"

namespace twill::models::tool_calls {
namespace {

bool holds(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

} // namespace

std::optional<tool_format> detect_format(std::string_view source) {
  // Templates with these tags write each argument of a call as an XML element. Such calls contain
  // no JSON, and no known format can read them.
  if (holds(source, "<function=") || holds(source, "<arg_key>")) return std::nullopt;
  if (holds(source, "<tool_call>")) return format_named("hermes");
  if (holds(source, "[TOOL_CALLS]")) {
    auto format = format_named("mistral");
    format->bare_names = holds(source, format->arguments);
    return format;
  }
  if (holds(source, "<|python_tag|>") || holds(source, "Environment: ipython"))
    return format_named("llama3_json");
  if (holds(source, "<|observation|>") || holds(source, "tool_call("))
    return format_named("chatglm3");
  // A template without tool support gets the tools as text, and that text asks for this format.
  return format_named("json");
}

std::optional<reasoning_tags> detect_reasoning(std::string_view source) {
  if (holds(source, "<think>") || holds(source, "</think>")) return reasoning_tags{};
  return std::nullopt;
}

bool ends_in_reasoning(std::string_view prompt, const reasoning_tags& tags) {
  const auto last = prompt.find_last_not_of(" \n\r\t");
  return last != std::string_view::npos && prompt.substr(0, last + 1).ends_with(tags.begin);
}

} // namespace twill::models::tool_calls
