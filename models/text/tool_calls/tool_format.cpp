#include "models/text/tool_calls/tool_format.hpp"

namespace twill::models::tool_calls {

const std::vector<tool_format>& known_formats() {
  static const std::vector<tool_format> formats{
      {"hermes", call_syntax::tagged_json, "<tool_call>", "</tool_call>", ""},
      {"mistral", call_syntax::listed_json, "[TOOL_CALLS]", "", "[ARGS]", "[CALL_ID]"},
      {"llama3_json", call_syntax::bare_json, "<|python_tag|>", "", ""},
      {"chatglm3", call_syntax::chatglm3, "", "", ""},
      {"json", call_syntax::bare_json, "", "", ""},
  };
  return formats;
}

std::optional<tool_format> format_named(std::string_view name) {
  for (const auto& format : known_formats())
    if (format.name == name) return format;
  return std::nullopt;
}

} // namespace twill::models::tool_calls
