// Every text that a grammar of tool calls allows is parsed into calls whose arguments are valid.
#include <random>
#include <string>
#include <vector>

#include "models/checkpoint/json.hpp"
#include "models/text/grammar/schema/validator.hpp"
#include "models/text/tool_calls/call_grammar.hpp"
#include "tests/catch.hpp"
#include "tests/models/text/grammar/random_answer.hpp"
#include "tests/models/text/tool_calls/parser_runner.hpp"

using namespace twill::test;

namespace {

const std::vector<callable> tools{
    {"get_weather",
     R"({"type": "object", "properties": {"city": {"type": "string", "maxLength": 6}, "days": {"type":
        "integer", "minimum": 1, "maximum": 14}}, "required": ["city"], "additionalProperties": false})"},
    {"now", R"({"type": "object", "properties": {}, "additionalProperties": false})"},
    {"move", R"({"type": "object", "properties": {"to": {"$ref": "#/$defs/p"}}, "required": ["to"],
        "additionalProperties": false, "$defs": {"p": {"type": "array", "items": {"type": "integer"}, "minItems": 2,
        "maxItems": 2}}})"},
};

const callable& tool_named(const std::string& name) {
  for (const auto& tool : tools)
    if (tool.name == name) return tool;
  FAIL("no tool " << name);
  return tools.front();
}

} // namespace

TEST_CASE("tool calls: answers that keep to the grammar are calls with valid arguments") {
  std::mt19937 random(9);
  for (const auto* name :
       {"hermes", "mistral", "mistral, bare", "llama3_json", "json", "chatglm3"}) {
    const bool bare = std::string_view(name).ends_with("bare");
    auto format = *format_named(bare ? "mistral" : name);
    format.bare_names = bare;
    for (const bool parallel : {false, true}) {
      const auto spec = call_grammar(format, tools, parallel);
      REQUIRE(spec.has_value());
      const auto grammar = compiled(*spec);
      REQUIRE(grammar.ok());
      for (int i = 0; i < 25; ++i) {
        const auto drawn = random_answer(grammar.value(), random);
        const auto& answer = drawn.text;
        INFO(name << ": " << answer);
        REQUIRE_FALSE(drawn.dead_end);
        if (!drawn.ended) continue;
        parser_options options;
        options.calls = format;
        const auto seen = summary(parse_whole(options, answer));
        REQUIRE(seen.text.empty());
        REQUIRE((parallel ? !seen.calls.empty() : seen.calls.size() == 1));
        for (const auto& call : seen.calls) {
          const document doc(tool_named(call.name).parameters);
          patterns known;
          const auto arguments = twill::models::parse_json(call.arguments, "arguments");
          INFO(call.arguments << ": " << (arguments.ok() ? "" : arguments.detail()));
          REQUIRE(call.complete);
          REQUIRE(arguments.ok());
          REQUIRE(validator(doc, known).valid(doc.root(), arguments.value()));
        }
      }
    }
  }
}

TEST_CASE("tool calls: what ChatGLM3's format has no room for is refused or left out") {
  const auto format = *format_named("chatglm3");
  CHECK_FALSE(call_grammar(format, std::vector<callable>{{"a:b", ""}}, false).has_value());
  const auto refused = compiled(*call_grammar(
      format, std::vector<callable>{{"f", R"({"type": "object", "required": ["a b"]})"}}, false));
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.detail().find("\"a b\" cannot be written as an argument") != std::string::npos);
  const auto left = compiled(*call_grammar(
      format,
      std::vector<callable>{
          {"f", R"({"type": "object", "properties": {"a b": {}, "s": {"type": "string"}}})"}},
      false));
  REQUIRE(left.ok());
  CHECK(passes(left.value(), "f\n ```python\ntool_call(s=\"x\\/)\" )\n```"));
  CHECK(passes(left.value(), "f\n ```python\ntool_call()\n```"));
  CHECK_FALSE(passes(left.value(), "f\n ```python\ntool_call(a b=1)\n```"));
}

TEST_CASE("tool calls: a tool without parameters is called with no arguments") {
  std::mt19937 random(4);
  for (const auto* name : {"hermes", "mistral", "llama3_json", "json", "chatglm3"}) {
    const auto format = *format_named(name);
    const auto grammar =
        compiled(*call_grammar(format, std::vector<callable>{{"now", ""}, {"f", ""}}, false));
    REQUIRE(grammar.ok());
    for (int i = 0; i < 20; ++i) {
      const auto drawn = random_answer(grammar.value(), random);
      INFO(name << ": " << drawn.text);
      REQUIRE(drawn.ended);
      parser_options options;
      options.calls = format;
      const auto seen = summary(parse_whole(options, drawn.text));
      REQUIRE(seen.calls.size() == 1);
      const auto arguments = twill::models::parse_json(seen.calls[0].arguments, "arguments");
      REQUIRE(arguments.ok());
      REQUIRE(arguments.value().as_object() != nullptr);
      CHECK(arguments.value().as_object()->empty());
    }
  }
}

TEST_CASE("tool calls: arguments are an object, whatever the schema of parameters leaves open") {
  const auto format = *format_named("hermes");
  const auto call = [](const std::string& arguments) {
    return "<tool_call>\n{\"name\": \"f\", \"arguments\": " + arguments + "}\n</tool_call>";
  };
  for (const auto* parameters : {"{}", R"({"minLength": 2})", R"({"enum": [1, {"a": 1}]})",
                                 R"({"anyOf": [{"type": "string"}, {"properties": {"a": {}}}]})"}) {
    INFO(parameters);
    const auto grammar =
        compiled(*call_grammar(format, std::vector<callable>{{"f", parameters}}, false));
    REQUIRE(grammar.ok());
    CHECK(passes(grammar.value(), call(R"({"a": 1})")));
    for (const auto* other : {"1", "\"ab\"", "[]", "null", "true"})
      CHECK_FALSE(passes(grammar.value(), call(other)));
  }
  const auto spec = *call_grammar(
      format, std::vector<callable>{{"f", R"({"type": "string"})"}, {"g", ""}}, false);
  const auto none = grammar_text(spec);
  REQUIRE_FALSE(none.ok());
  CHECK(none.code() == errc::unsatisfiable);
  CHECK(none.detail().find(R"({"type": "string"})") != std::string::npos);
}
