// output_plan decides which grammar constrains the output of a request and which parser reads it,
// depending on the request and on the model's format of tool calls and reasoning.
#include "actors/session/output_plan.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/text/tool_calls/tool_format.hpp"
#include "tests/catch.hpp"
#include "tests/models/text/grammar/byte_vocabulary.hpp"

using namespace twill::actors;
using twill::config::grammar_spec;

namespace {

constexpr std::int32_t call_marker = 300, think = 301, end_think = 302, looks_like_a_marker = 303;

/// One token per byte, except for markers and for a space together with the byte that follows it.
class marker_tokenizer final : public twill::models::tokenizer {
public:
  twill::models::result<std::vector<twill::models::token_id>>
  encode(std::string_view text, const twill::models::encode_options&) const override {
    std::vector<twill::models::token_id> ids;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const bool joined = text[i] == ' ' && i + 1 < text.size();
      ids.push_back((joined ? 400 : 0) + text[joined ? ++i : i]);
    }
    return ids;
  }
  twill::models::result<std::vector<twill::models::token_id>>
  encode_prompt(std::string_view text, const twill::models::byte_ranges&) const override {
    return encode(text, {});
  }
  std::string token_bytes(twill::models::token_id id, bool special) const override {
    if (id < 256) return std::string(1, static_cast<char>(id));
    if (is_special(id) && !special) return "";
    if (id == call_marker || id == looks_like_a_marker) return "<tool_call>";
    if (id == think) return "<think>";
    return id == end_think ? "</think>" : "";
  }
  std::int32_t vocab_size() const override { return 600; }
  bool is_special(twill::models::token_id id) const override {
    return id == call_marker || id == think || id == end_think;
  }
  const std::vector<twill::models::token_id>& end_ids() const override { return ends_; }
  twill::models::token_id bos_id() const override { return -1; }
  twill::models::token_id eos_id() const override { return -1; }
  std::string kind() const override { return "markers"; }

private:
  std::vector<twill::models::token_id> ends_;
};

/// A model that writes calls in this format and reasons. Its markers are control tokens.
served_model model_of(const std::string& format) {
  served_model model;
  model.answers.calls = twill::models::tool_calls::format_named(format);
  model.answers.reasoning = twill::models::tool_calls::reasoning_tags{};
  model.answers.call_markers = {call_marker};
  model.answers.reasoning_markers = {think, end_think};
  model.answers.reasoning_begin_token = think;
  return model;
}

/// A chat that offers the tool `look`.
request offering(tool_choice_kind what = tool_choice_kind::automatic) {
  request asked;
  chat_prompt chat;
  chat.tools = twill::value_list{twill::value_object{
      {"type", "function"},
      {"function", twill::value_object{{"name", "look"},
                                       {"parameters", twill::value_object{{"type", "object"}}}}}}};
  asked.prompt = chat;
  asked.tools.kind = what;
  asked.parse_output = true;
  return asked;
}

request demanding(grammar_spec form) {
  request asked = offering();
  asked.grammar = std::move(form);
  return asked;
}

output_plan planned(const std::string& format, const request& asked,
                    const std::string& prompt = "hi") {
  auto plan = plan_output(model_of(format), asked, prompt);
  REQUIRE(plan.ok());
  return std::move(plan).value();
}

bool lets_through(const output_plan& plan, const std::string& text) {
  const auto grammar = twill::test::compiled(*plan.grammar);
  REQUIRE(grammar.ok());
  return twill::test::passes(grammar.value(), text);
}

} // namespace

TEST_CASE("beside a schema one whole call passes, or an answer, which is as closed as was asked") {
  const std::string schema = R"({"type": "object", "properties": {"a": {"type": "integer"}}})";
  for (const bool closed : {false, true}) {
    const auto asked = demanding(twill::test::schema_spec(schema, closed));
    const auto plan = planned("mistral", asked);
    CHECK(plan.is_json);
    CHECK(plan.reading.names == std::vector<std::string>{"look"});
    CHECK_FALSE(plan.reading.only_calls);
    const std::string call = R"([TOOL_CALLS] [{"name": "look", "arguments": {}}])";
    CHECK(lets_through(plan, call));
    CHECK_FALSE(lets_through(plan, call.substr(0, call.size() - 1)));
    CHECK_FALSE(lets_through(plan, call + call));
    CHECK(lets_through(plan, R"({"a": 1})"));
    CHECK(lets_through(plan, R"({"b": 1})") == !closed);
  }
}

TEST_CASE("if a call could not be distinguished from the answer, only the format holds") {
  grammar_spec words;
  words.kind = twill::config::grammar_kind::choice;
  words.choices = {"yes", "no"};
  const auto plan = planned("hermes", demanding(words));
  CHECK(*plan.grammar == words);
  CHECK_FALSE(plan.reading.calls); // text that looks like a call stays text
  CHECK_FALSE(plan.is_json);
  const auto bare = planned("json", demanding(grammar_spec{}));
  CHECK(*bare.grammar == grammar_spec{});
  CHECK(planned("hermes", demanding(twill::test::schema_spec("{}"))).is_json);
  request text;
  text.grammar = twill::test::schema_spec("{}");
  CHECK(planned("hermes", text).is_json);
}

TEST_CASE("markers have their text where they are read or a grammar holds them") {
  const std::vector<std::int32_t> all{call_marker, think, end_think};
  CHECK(planned("hermes", offering()).shown == all);
  CHECK_FALSE(planned("hermes", offering()).with_markers);
  auto raw = offering();
  raw.parse_output = false;
  CHECK(planned("hermes", raw).shown.empty());
  CHECK(planned("hermes", request{}).shown.empty());
  auto forced = offering(tool_choice_kind::required);
  forced.parse_output = false;
  CHECK(planned("hermes", forced).with_markers);
  CHECK(planned("hermes", forced).shown == all);
  // The grammar begins behind the reasoning, so the markers of reasoning must be known.
  request thinks;
  thinks.grammar.emplace();
  CHECK_FALSE(planned("hermes", thinks).with_markers);
  thinks.parse_output = true;
  CHECK(planned("hermes", thinks).with_markers);
}

TEST_CASE("an output may begin with reasoning, unless the prompt has begun or ended it") {
  const auto open = planned("hermes", offering(), "hi");
  CHECK(open.reasoning_begin_token == think);
  CHECK_FALSE(open.reading.begins_in_reasoning);
  const auto begun = planned("hermes", offering(), "hi <think>\n");
  CHECK(begun.reasoning_begin_token == -1);
  CHECK(begun.reading.begins_in_reasoning);
  const auto ended = planned("hermes", offering(), "hi <think></think>\n\n");
  CHECK(ended.reasoning_begin_token == -1);
  CHECK_FALSE(ended.reading.begins_in_reasoning);
}

TEST_CASE("a model's markers are its control tokens of that text, and no other tokens") {
  twill::models::model model;
  model.text = std::make_shared<marker_tokenizer>();
  model.chat = twill::models::chat_template::parse("<tool_call> <think>", "", "").value();
  const auto format = find_answer_format(*model.text, model.chat.get(), "auto");
  REQUIRE(format.calls);
  CHECK(format.calls->name == "hermes");
  CHECK(format.call_markers == std::vector<std::int32_t>{call_marker});
  CHECK(format.reasoning_markers == std::vector<std::int32_t>{think, end_think});
  CHECK(format.reasoning_begin_token == think);
  CHECK(find_answer_format(*model.text, model.chat.get(), "mistral").call_markers.empty());
}

TEST_CASE("a word is spelled as at the beginning of a text, and as behind a space") {
  const marker_tokenizer text;
  using spelled = std::vector<std::vector<std::int32_t>>;
  CHECK(tokens_of_words(text, {"no"}).value() == spelled{{'n', 'o'}, {400 + 'n', 'o'}});
  CHECK(tokens_of_words(text, {" no"}).value() == spelled{{'n', 'o'}, {400 + 'n', 'o'}});
  CHECK(tokens_of_words(text, {""}).value().size() == 1); // the empty word is a space
}
