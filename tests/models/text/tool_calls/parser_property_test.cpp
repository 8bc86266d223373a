// Random answers in each format: however an answer is cut into pieces, the events equal those of
// the whole answer.
#include <string>
#include <string_view>

#include "models/text/detokenizer.hpp"
#include "tests/catch.hpp"
#include "tests/models/text/tool_calls/parser_runner.hpp"

using namespace twill::test;
using namespace twill::models;

namespace {

constexpr int n_answers = 1000;

class answer_writer {
public:
  explicit answer_writer(unsigned seed) : random_(seed) {}

  std::mt19937& random() { return random_; }
  std::size_t below(std::size_t n) { return random_() % n; }

  template <std::size_t N>
  std::string one_of(const char* const (&texts)[N]) {
    return texts[below(N)];
  }

  std::string words() {
    static const char* const parts[] = {
        "yes",  " ",        "\n",           "é",    "北京", "🦊", "<",     "<tool", "[TOOL",
        "{",    "}",        "\"",           "\\",   ",",    "```",  "tool_", "<thi",  "</think>",
        "name", "\xe5\x8c", "</tool_call>", "<|py", ";",    "[",    "]"};
    std::string out;
    for (auto n = below(8); n > 0; --n)
      out += one_of(parts);
    return out;
  }

  std::string json(int depth = 0) {
    static const char* const scalars[] = {
        "1", "-2.5e3", "true", "null", "\"x\"", "\"\\\"}\\u00e9é\"", "\"\"", "{}", "[]"};
    if (depth > 2 || below(3) == 0) return one_of(scalars);
    std::string out = "{";
    for (auto n = below(3); n > 0; --n)
      out += (out.size() > 1 ? ", \"k" : "\"k") + std::to_string(n) + "\": " + json(depth + 1);
    return out + "}";
  }

  std::string object(const char* arguments_key) {
    const std::string name = "\"name\": \"f" + std::to_string(below(9)) + "\"";
    const std::string arguments = std::string("\"") + arguments_key + "\": {\"a\": " + json() + "}";
    std::string out =
        below(4) == 0 ? "{" + arguments + ", " + name + "}" : "{" + name + ", " + arguments + "}";
    if (below(10) == 0) out.resize(below(out.size())); // cut short
    return out;
  }

  /// What may stand before a Mistral call's name: nothing, white space, or a wrong marker.
  std::string words_of_name() {
    static const char* const parts[] = {"", "", "", "", "", " ", "\n", "[ARGS]", "[CALL_ID]", "[C"};
    return one_of(parts);
  }

  std::string call_id() {
    static const char* const ids[] = {"",
                                      "",
                                      "[CALL_ID]abc123xyz",
                                      "[CALL_ID]a1B2c3D4e",
                                      "[CALL_ID]",
                                      "[CALL_ID] null ",
                                      "[CALL_ID]é",
                                      "[CALL_I",
                                      "[CALL_ID]x[CALL_ID]y",
                                      " "};
    return one_of(ids);
  }

  std::string call(const std::string& format) {
    if (format == "hermes")
      return "<tool_call>\n" + object("arguments") + (below(9) == 0 ? "" : "\n</tool_call>");
    if (format == "mistral") {
      if (below(2) == 0)
        return "[TOOL_CALLS]" + words_of_name() + "f" + call_id() +
               std::string(below(2) == 0 ? "[ARGS]" : "") + "{\"a\": " + json() + "}";
      return "[TOOL_CALLS] [" + object("arguments") +
             (below(2) == 0 ? ", " + object("arguments") : "") + "]";
    }
    if (format == "llama3_json")
      return (below(2) == 0 ? "<|python_tag|>" : "") + object("parameters") +
             (below(2) == 0 ? "; " + object("parameters") : "");
    if (format == "chatglm3")
      return "f\n ```python\ntool_call(a='" + words() + "', b=[1, True], c={'k': None})\n```";
    return below(2) == 0 ? object("arguments")
                         : "[" + object("arguments") + "," + object("parameters") + "]";
  }

  std::string answer(const std::string& format) {
    std::string out = below(3) == 0 ? words() : "";
    if (below(4) == 0) out = "<think>" + words() + "</think>" + out;
    for (auto n = below(3); n > 0; --n)
      out += call(format) + (below(2) == 0 ? words() : "\n");
    return out;
  }

private:
  std::mt19937 random_;
};

void check_format(const std::string& format) {
  answer_writer writer(17);
  int n_calls = 0;
  for (int i = 0; i < n_answers; ++i) {
    const auto answer = writer.answer(format);
    parser_options options;
    options.calls = format_named(format);
    if (writer.below(2) == 0) options.thoughts = reasoning_tags{};
    const auto whole = parse_whole(options, answer);
    INFO(format << ": " << answer);
    for (const std::size_t longest : {1, 3, 20}) {
      std::vector<call_event> seen;
      REQUIRE(parse_in_pieces(options, answer, writer.random(), longest, &seen) == whole);
      for (const auto& e : seen)
        if (e.kind == call_event_kind::text || e.kind == call_event_kind::reasoning)
          REQUIRE(is_utf8(e.bytes));
    }
    for (const auto& call : summary(whole).calls)
      n_calls += call.complete ? 1 : 0;
  }
  CHECK(n_calls > n_answers / 4);
}

} // namespace

TEST_CASE("tool calls: streaming equals whole for hermes") {
  check_format("hermes");
}
TEST_CASE("tool calls: streaming equals whole for mistral") {
  check_format("mistral");
}
TEST_CASE("tool calls: streaming equals whole for llama3_json") {
  check_format("llama3_json");
}
TEST_CASE("tool calls: streaming equals whole for chatglm3") {
  check_format("chatglm3");
}
TEST_CASE("tool calls: streaming equals whole for generic JSON") {
  check_format("json");
}

TEST_CASE("tool calls: no beginning of a marker is handed out as text before it is certain") {
  answer_writer writer(23);
  for (int i = 0; i < n_answers; ++i) {
    const std::string marker = "<tool_call>";
    std::string answer =
        writer.words() + marker + "{\"name\": \"f\", \"arguments\": {}}</tool_call>";
    if (answer.find(marker) != answer.rfind(marker)) continue;
    parser p({format_named("hermes"), std::nullopt, false});
    std::string text;
    for (const char c : answer)
      for (const auto& e : p.push(std::string_view(&c, 1)))
        if (e.kind == call_event_kind::text) text += e.bytes;
    INFO(answer);
    REQUIRE(text.find(marker.substr(0, 9)) == std::string::npos);
  }
}
