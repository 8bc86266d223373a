#include <string>
#include <utility>
#include <vector>

#include "tests/catch.hpp"
#include "tests/models/text/tool_calls/parser_runner.hpp"

using namespace twill::test;

namespace {

seen_answer parsed(const char* format, const std::string& answer) {
  parser_options options;
  options.calls = format_named(format);
  return summary(parse_whole(options, answer));
}

const seen_call beijing{"get_weather", R"({"city": "Beijing", "days": 3})", true};

} // namespace

TEST_CASE("tool calls: hermes calls stand between tags, with text around") {
  const auto seen =
      parsed("hermes", "Let me look.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": "
                       "{\"city\": \"Beijing\", \"days\": 3}}\n</tool_call>\n<tool_call>"
                       "{\"arguments\": {}, \"name\": \"now\"}</tool_call>");
  CHECK(seen.text == "Let me look.");
  CHECK(seen.calls == std::vector<seen_call>{beijing, {"now", "{}", true}});
}

TEST_CASE("tool calls: what is no call between the tags is text, byte by byte") {
  for (const std::string answer :
       {"<tool_call>nothing</tool_call>", "<tool_call> {\"title\": 1}</tool_call>",
        "a < b <tool_ca", "<tool_call>", "<tool_call>{\"name\": \"x",
        "{\"name\": \"x\", \"arguments\": {}}", "  two lines\n\n", ""})
    CHECK(parsed("hermes", answer).text == answer);
}

TEST_CASE("tool calls: a call that breaks off after its name ends incomplete") {
  const auto seen = parsed("hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": [1, ");
  CHECK(seen.calls == std::vector<seen_call>{{"f", "{\"a\": [1, ", false}});
  CHECK(seen.text.empty());
}

TEST_CASE("tool calls: what a cut leaves of a call that a grammar demands is never text") {
  const std::pair<const char*, std::string> answers[] = {
      {"hermes", "<tool_call>\n{\"name\": \"now\", \"arguments\": {\"a\": 1}}\n</tool_call>\n"
                 "<tool_call>\n{\"name\": \"north\", \"arguments\": {}}\n</tool_call>"},
      {"mistral", "[TOOL_CALLS] [{\"name\": \"now\", \"arguments\": {\"a\": 1}}, "
                  "{\"name\": \"north\", \"arguments\": {}}]"},
      {"mistral", "[TOOL_CALLS]now[CALL_ID]abc123xyz[ARGS]{\"a\": 1}[TOOL_CALLS]north[ARGS]{}"},
      {"llama3_json", "{\"name\": \"now\", \"parameters\": {\"a\": 1}}; "
                      "{\"name\": \"north\", \"parameters\": {}}"},
      {"json", "[{\"name\": \"now\", \"arguments\": {\"a\": 1}}, "
               "{\"name\": \"north\", \"arguments\": {}}]"},
      {"chatglm3", "now\n ```python\ntool_call(a=1)\n```"}};
  for (const auto& [format, answer] : answers) {
    parser_options options;
    options.calls = format_named(format);
    options.only_calls = true;
    for (std::size_t n = 0; n <= answer.size(); ++n) {
      const auto cut = answer.substr(0, n);
      INFO(format << ": " << cut);
      options.names = {"now", "north"};
      auto seen = summary(parse_whole(options, cut));
      CHECK(seen.text.empty());
      // The name is known once it is "now": "no" could still become "north".
      const bool is_known = cut.find("now") != std::string::npos;
      CHECK(seen.calls.empty() == !is_known);
      options.names = {"now"};
      seen = summary(parse_whole(options, cut));
      CHECK(seen.text.empty());
      REQUIRE(seen.calls.empty() == (n == 0));
      if (n > 0) CHECK(seen.calls[0].name == "now");
      if (seen.calls.size() == 1 && seen.calls[0].arguments != "{\"a\": 1}")
        CHECK((!seen.calls[0].complete && seen.calls[0].arguments.size() < 8));
    }
  }
}

TEST_CASE(
    "tool calls: a cut in a call beside answers to a schema leaves no text behind its marker") {
  parser_options options;
  options.calls = format_named("hermes");
  options.names = {"now"};
  CHECK(summary(parse_whole(options, "<tool_call>\n{\"na")).calls ==
        std::vector<seen_call>{{"now", "", false}});
  CHECK(summary(parse_whole(options, "{\"na")).text == "{\"na");
}

TEST_CASE("tool calls: a beginning of the end marker is no text") {
  CHECK(parsed("hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_").text.empty());
}

TEST_CASE("tool calls: mistral writes a list, or a bare name and its arguments") {
  CHECK(parsed("mistral",
               "[TOOL_CALLS] [{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Beijing\", "
               "\"days\": 3}}, {\"name\": \"now\", \"arguments\": {}}]")
            .calls == std::vector<seen_call>{beijing, {"now", "{}", true}});
  CHECK(parsed("mistral",
               "[TOOL_CALLS]get_weather[ARGS]{\"city\": \"Beijing\", \"days\": 3}[TOOL_CALLS]now{}")
            .calls == std::vector<seen_call>{beijing, {"now", "{}", true}});
  CHECK(parsed("mistral", "[TOOL_CALLS] sorry, no").text == "[TOOL_CALLS] sorry, no");
}

TEST_CASE("tool calls: mistral's markers part name, id and arguments") {
  const std::string city = R"({"city": "Beijing", "days": 3})";
  const auto one = [&](const std::string& answer) {
    const auto seen = parsed("mistral", answer);
    INFO(answer << " leaves " << seen.text);
    REQUIRE(seen.calls.size() == 1);
    REQUIRE(seen.text.empty());
    CHECK(seen.calls[0].arguments == city);
    CHECK(seen.calls[0].complete);
    return seen.calls[0].name + "/" + seen.calls[0].id;
  };
  CHECK(one("[TOOL_CALLS]f[CALL_ID]abc123xyz[ARGS]" + city) == "f/abc123xyz");
  CHECK(one("[TOOL_CALLS]f[ARGS]" + city) == "f/");
  CHECK(one("[TOOL_CALLS]f[CALL_ID]abc123xyz" + city) == "f/abc123xyz");
  CHECK(one("[TOOL_CALLS] f [CALL_ID] abc123xyz [ARGS] " + city) == "f/abc123xyz");
  CHECK(one("[TOOL_CALLS]a:b/c.d-e_f[CALL_ID]abc123xyz[ARGS]" + city) == "a:b/c.d-e_f/abc123xyz");
  // An id that a client could not send back is dropped.
  CHECK(one("[TOOL_CALLS]f[CALL_ID][ARGS]" + city) == "f/");
  CHECK(one("[TOOL_CALLS]f[CALL_ID]null[ARGS]" + city) == "f/");
  CHECK(one("[TOOL_CALLS]f[CALL_ID]" + std::string(65, 'a') + "[ARGS]" + city) == "f/");
  // Calls in a row, of which two have the same id. The second one of these gets none.
  const auto row =
      parsed("mistral", "So:[TOOL_CALLS]f[CALL_ID]abc123xyz[ARGS]{}[TOOL_CALLS]g[ARGS]{}"
                        "[TOOL_CALLS]f[CALL_ID]abc123xyz[ARGS]{\"a\": 1}\n"
                        "[TOOL_CALLS]h[CALL_ID]D4e5F6g7H[ARGS]{}");
  CHECK(row.text == "So:");
  CHECK(row.calls == std::vector<seen_call>{{"f", "{}", true, "abc123xyz"},
                                            {"g", "{}", true, ""},
                                            {"f", "{\"a\": 1}", true, ""},
                                            {"h", "{}", true, "D4e5F6g7H"}});
  // A text that only resembles such a call stays text, byte by byte.
  for (const char* text : {"[TOOL_CALLS]f[CALL_ID]abc[CALL_ID]def[ARGS]{}", "[TOOL_CALLS]f[ARGS]x",
                           "[TOOL_CALLS][ARGS]{}", "[TOOL_CALLS]f[ARGS][CALL_ID]x{}",
                           "[TOOL_CALLS]f[CALL_ID]a b[ARGS]{}", "[TOOL_CALLS]f[CALL_"}) {
    INFO(text);
    const auto seen = parsed("mistral", text);
    CHECK(seen.calls.empty());
    CHECK(seen.text == text);
  }
}

TEST_CASE("tool calls: Llama 3 answers with an object of name and parameters") {
  CHECK(parsed("llama3_json",
               "<|python_tag|>{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Beijing\", "
               "\"days\": 3}}; {\"name\": \"now\", \"parameters\": {}}")
            .calls == std::vector<seen_call>{beijing, {"now", "{}", true}});
  CHECK(parsed("llama3_json",
               "{\"type\": \"function\", \"function\": {\"name\": \"now\", \"parameters\": {}}}")
            .calls == std::vector<seen_call>{{"now", "{}", true}});
}

TEST_CASE("tool calls: an answer in JSON that is no call stays text") {
  for (const std::string answer :
       {"{\"name\": \"Ann\"}", "{\"name\": \"Ann\", \"age\": 3}", "{\"age\": 3}", "{}", "[1, 2]",
        "Hello {\"name\": \"f\", \"parameters\": {}}"}) {
    CHECK(parsed("llama3_json", answer).text == answer);
    CHECK(parsed("json", answer).text == answer);
  }
}

TEST_CASE("tool calls: generic JSON takes a list, and arguments as a text") {
  CHECK(parsed("json",
               "[{\"name\": \"get_weather\", \"arguments\": \"{\\\"city\\\": \\\"Beijing\\\", "
               "\\\"days\\\": 3}\"}]")
            .calls == std::vector<seen_call>{beijing});
}

TEST_CASE("tool calls: ChatGLM3's Python call becomes JSON") {
  CHECK(
      parsed("chatglm3", "get_weather\n ```python\ntool_call(city='Beijing', days=3)\n```").calls ==
      std::vector<seen_call>{beijing});
  CHECK(
      parsed("chatglm3", "f\n```python\ntool_call(a=[1, 'x\"y', (True, None)], b={'k': -1.5})\n```")
          .calls ==
      std::vector<seen_call>{{"f", R"({"a": [1, "x\"y", [true, null]], "b": {"k": -1.5}})", true}});
  CHECK(parsed("chatglm3", "\n Beijing is large.").text == "Beijing is large.");
  CHECK(parsed("chatglm3", "Yes\nor no").text == "Yes\nor no");
}

TEST_CASE("tool calls: reasoning is apart, before and between") {
  parser_options options;
  options.calls = format_named("hermes");
  options.thoughts = reasoning_tags{};
  const auto seen =
      summary(parse_whole(options, "<think>hm <tool_call></think>\nSo.<think>x</think>"));
  CHECK(seen.reasoning == "hm <tool_call>x");
  CHECK(seen.text == "\nSo.");
  options.begins_in_reasoning = true;
  CHECK(summary(parse_whole(options, "hm</think>So.")).reasoning == "hm");
}

TEST_CASE("tool calls: a piece of text never ends inside a character") {
  parser p({format_named("hermes"), std::nullopt, false});
  CHECK(p.push("\xc3").empty());
  const auto events = p.push("\xa9<");
  REQUIRE(events.size() == 1);
  CHECK(events[0].bytes == "\xc3\xa9");
  CHECK(p.finish().at(0).bytes == "<");
}
