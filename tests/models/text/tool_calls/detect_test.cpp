#include "models/text/tool_calls/detect.hpp"
#include "tests/catch.hpp"

using namespace twill::models::tool_calls;

namespace {

std::string name_of(std::string_view source) {
  const auto format = detect_format(source);
  return format ? format->name : "";
}

} // namespace

TEST_CASE("tool calls: the format follows from the chat template") {
  CHECK(name_of("{% if tools %}<tool_call>{{ call }}</tool_call>{% endif %}") == "hermes");
  CHECK(name_of("{{ '[TOOL_CALLS] [' }}{% for t in tools %}") == "mistral");
  CHECK_FALSE(detect_format("[TOOL_CALLS] [")->bare_names);
  CHECK(detect_format("[TOOL_CALLS]{{ name }}[ARGS]{{ arguments }}")->bare_names);
  CHECK(name_of("Environment: ipython\n{% if tools %}") == "llama3_json");
  CHECK(name_of("<|observation|>{% if tools %}") == "chatglm3");
  CHECK(name_of("{% if tools %}{{ tools | tojson }}{% endif %}") == "json");
  CHECK(name_of("{{ messages[0].content }}") == "json");
  CHECK(name_of("<tool_call>\n<function={{ name }}>{% if tools %}").empty());
}

TEST_CASE("tool calls: reasoning tags follow from the template, their state from the prompt") {
  CHECK(detect_reasoning("{{ content.split('</think>')[-1] }}").has_value());
  CHECK_FALSE(detect_reasoning("{{ content }}").has_value());
  CHECK(ends_in_reasoning("<|im_start|>assistant\n<think>\n", {}));
  CHECK_FALSE(ends_in_reasoning("<think>\n\n</think>\n\n", {}));
}
