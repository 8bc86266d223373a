// How requests of Anthropic's Messages API become engine requests, and which are refused.
#include "net/protocol/anthropic/messages.hpp"

#include <set>

#include "net/protocol/anthropic/model_page.hpp"
#include "net/protocol/api_style.hpp"
#include "tests/catch.hpp"
#include "tests/fuzz/mutate.hpp"
#include "tests/net/support/codec_support.hpp"
#include "tests/net/support/message_bodies.hpp"
#include "tests/support/operations.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::testing;

namespace {

using form = config::grammar_spec;
using choice = actors::tool_choice_kind;

struct fixture : codec_fixture {
  actors::request ask(const std::string& body) {
    auto made = parse_messages(json(body), context);
    if (!made.ok()) throw std::runtime_error(made.code().message);
    return made.value().requests.at(0);
  }
  actors::chat_prompt chat(const std::string& messages, const std::string& members = "") {
    return std::get<actors::chat_prompt>(
        ask(R"({"max_tokens":5,)" + members + R"("messages":)" + messages + "}").prompt);
  }
  /// The error message, which must name `param`; empty if the body is accepted.
  std::string refusal(const std::string& body) {
    const auto made = parse_messages(json(body), context);
    if (made.ok()) return {};
    CHECK(map_status(made.code()) == 400);
    CHECK(contains(made.code().message, "`" + made.code().param + "`"));
    return made.code().message;
  }
  std::string refusal_of(const std::string& members) {
    return refusal(R"({"max_tokens":5,"messages":[{"role":"user","content":"x"}],)" + members +
                   "}");
  }
  std::string refusal_of_messages(const std::string& messages) {
    return refusal(R"({"max_tokens":5,"messages":)" + messages + "}");
  }

private:
  static int map_status(const api_error& error) {
    return style_error(error, api_style::anthropic, "").http_status;
  }
};

} // namespace

TEST_CASE("Messages: a request with every field means this to the engine") {
  fixture b;
  const auto made = parse_messages(json(full_message), b.context);
  REQUIRE(made.ok());
  CHECK(made.value().stream);
  CHECK(!made.value().stored.has_value());
  REQUIRE(made.value().requests.size() == 1);
  const auto& request = made.value().requests[0];
  CHECK(request.model == "test-model");
  CHECK(request.parse_output);
  CHECK(request.shorten_output);
  CHECK(!request.grammar.has_value());
  CHECK(request.sampling.max_tokens == 32000);
  CHECK(request.sampling.temperature == 0.5f);
  CHECK(request.sampling.top_k == 7);
  CHECK(request.sampling.top_p == 0.9f);
  CHECK(request.sampling.stop == std::vector<std::string>{"END", "</done>"});
  CHECK(request.tools.kind == choice::automatic);
  CHECK(!request.tools.parallel);

  const auto& chat = std::get<actors::chat_prompt>(request.prompt);
  CHECK(!chat.continue_last);
  CHECK(chat.add_generation_prompt);
  CHECK(chat.now_unix_s > 0);
  CHECK(value(chat.template_arguments) == json(R"({"enable_thinking":true})"));
  CHECK(chat.tools == json(R"([
    {"type":"function","function":{"name":"weather","description":"The weather of a city.",
     "parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]},
     "strict":true,"input_examples":[{"city":"Rome"}]}},
    {"type":"function","function":{"name":"time","parameters":{"type":"object"}}}])"));
  CHECK(chat.messages == json(R"([
    {"role":"system","content":"Be brief.\nBe kind."},
    {"role":"user","content":"Weather?\nIn Oslo."},
    {"role":"assistant","content":"I look.","reasoning_content":"They ask for weather.",
     "tool_calls":[
      {"id":"toolu_1","type":"function","function":{"name":"weather","arguments":{"city":"Oslo"}}},
      {"id":"toolu_2","type":"function","function":{"name":"time","arguments":{}}}]},
    {"role":"tool","content":"rain\ncold","tool_call_id":"toolu_1","name":"weather"},
    {"role":"tool","content":"Error: no clock","tool_call_id":"toolu_2","name":"time"},
    {"role":"user","content":"And?"},
    {"role":"system","content":"One sentence."},
    {"role":"user","content":"Go on.\nNow."}])"));
}

TEST_CASE("Messages: neighbours of one role are one message") {
  fixture b;
  CHECK(b.chat(R"([{"role":"user","content":"a"},{"role":"user","content":"b"},
                   {"role":"assistant","content":"c"},
                   {"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f"}]},
                   {"role":"user","content":[{"type":"tool_result","tool_use_id":"t"}]},
                   {"role":"user","content":[{"type":"text","text":""}]}])")
            .messages == json(R"([
    {"role":"user","content":"a\nb"},
    {"role":"assistant","content":"c","tool_calls":[
      {"id":"t","type":"function","function":{"name":"f","arguments":{}}}]},
    {"role":"tool","content":"","tool_call_id":"t","name":"f"}])"));
  CHECK(b.chat(R"([{"role":"system","content":"b"},{"role":"user","content":[]}])",
               R"("system":"a",)")
            .messages ==
        json(R"([{"role":"system","content":"a\nb"},{"role":"user","content":""}])"));
  CHECK(b.chat(R"([{"role":"user","content":"q"},
                   {"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f",
                                                   "input":{"n":1}}]},
                   {"role":"user","content":[
                      {"type":"tool_result","tool_use_id":"t","is_error":true},
                      {"type":"tool_result","tool_use_id":"u","is_error":true,
                       "content":"Error: gone"}]}])")
            .messages == json(R"([
    {"role":"user","content":"q"},
    {"role":"assistant","content":null,"tool_calls":[
      {"id":"t","type":"function","function":{"name":"f","arguments":{"n":1}}}]},
    {"role":"tool","content":"Error","tool_call_id":"t","name":"f"},
    {"role":"tool","content":"Error: gone","tool_call_id":"u"}])"));
}

TEST_CASE("Messages: an assistant's last message is the beginning of the answer") {
  fixture b;
  const auto asked = b.ask(begun_message);
  const auto& chat = std::get<actors::chat_prompt>(asked.prompt);
  CHECK(chat.continue_last);
  CHECK(at(chat.messages, 2) == json(R"({"role":"assistant","content":"{\"sum\":"})"));
  CHECK(value(chat.template_arguments) == json(R"({"enable_thinking":false})"));
  CHECK(asked.grammar ==
        form{.kind = config::grammar_kind::json_schema,
             .text = R"({"type":"object","properties":{"sum":{"type":"integer"}}})",
             .closed_objects = true});
  // An assistant message without text is not continued.
  const auto empty = b.chat(R"([{"role":"user","content":"q"},{"role":"assistant","content":""}])");
  CHECK(!empty.continue_last);
  CHECK(empty.messages == json(R"([{"role":"user","content":"q"}])"));
  const std::pair<const char*, const char*> cases[] = {
      {R"([{"role":"assistant","content":""}])",
       "`messages` must be a list of at least one message with content"},
      {R"([{"role":"user","content":"q"},{"role":"assistant","content":"so "}])",
       "`messages[1].content` must be text that does not end with white space"},
      {R"([{"role":"user","content":"q"},{"role":"assistant","content":[
             {"type":"tool_use","id":"t","name":"f","input":{}}]}])",
       "`messages[1].content` must be followed by a message of the user with the results"},
  };
  for (const auto& [messages, expected] : cases) {
    const auto message = b.refusal_of_messages(messages);
    INFO(messages << " -> " << message);
    CHECK(contains(message, expected));
  }
  for (const auto* on : {"enabled", "adaptive"})
    CHECK(contains(b.refusal(R"({"max_tokens":5,"thinking":{"type":")" + std::string(on) +
                             R"("},"messages":[{"role":"assistant","content":"so"}]})"),
                   "`thinking.type` must be \"disabled\""));
}

TEST_CASE("Messages: what the template gets of `thinking`") {
  fixture b;
  const auto received = [&](const std::string& members) {
    return value(b.chat(R"([{"role":"user","content":"x"}])", members).template_arguments);
  };
  CHECK(received("") == json("{}"));
  CHECK(received(R"("thinking":null,)") == json("{}"));
  CHECK(received(R"("thinking":{"type":"adaptive"},)") == json(R"({"enable_thinking":true})"));
  CHECK(received(R"("thinking":{"type":"disabled"},)") == json(R"({"enable_thinking":false})"));
  CHECK(received(R"("thinking":{"type":"between_tools"},)") ==
        json(R"({"enable_thinking":false})"));
  CHECK(received(R"("thinking":{"type":"enabled","budget_tokens":5},
                "chat_template_kwargs":{"enable_thinking":false,"k":1},)") ==
        json(R"({"enable_thinking":false,"k":1})"));
}

TEST_CASE("Messages: which tools may be called") {
  fixture b;
  const std::string tools = R"("tools":[{"name":"f","input_schema":{}},
                                        {"name":"g","input_schema":{}}])";
  const auto of = [&](const std::string& tool_choice) {
    return b.ask(R"({"max_tokens":5,"messages":[{"role":"user","content":"x"}],)" + tools +
                 R"(,"tool_choice":)" + tool_choice + "}");
  };
  const auto shown = [](const actors::request& asked) {
    const auto& list = std::get<actors::chat_prompt>(asked.prompt).tools;
    return list.is_null() ? std::size_t{0} : list.as_list()->size();
  };
  CHECK(of(R"({"type":"any"})").tools.kind == choice::required);
  CHECK(of(R"({"type":"any"})").tools.parallel);
  CHECK(!of(R"({"type":"any","disable_parallel_tool_use":true})").tools.parallel);
  CHECK(of(R"({"type":"tool","name":"g"})").tools.kind == choice::named);
  CHECK(of(R"({"type":"tool","name":"g"})").tools.name == "g");
  CHECK(shown(of(R"({"type":"auto"})")) == 2);
  CHECK(of(R"({"type":"none"})").tools.kind == choice::none);
  CHECK(shown(of(R"({"type":"none"})")) == 0);
  const std::pair<const char*, const char*> cases[] = {
      {R"({"type":"required"})", "`tool_choice.type` must be \"auto\", \"any\", \"tool\" or"},
      {R"("any")", "`tool_choice` must be an object, got \"any\""},
      {"{}", "`tool_choice.type` must be"},
      {R"({"type":"tool"})", "`tool_choice.name` must be the name of one of the tools"},
      {R"({"type":"tool","name":"h"})", "`tool_choice.name` must be the name of one of the tools"},
      {R"({"type":"tool","name":7})", "`tool_choice.name` must be a string, got 7"},
      {R"({"type":"auto","disable_parallel_tool_use":1})",
       "`tool_choice.disable_parallel_tool_use` must be true or false, got 1"},
  };
  for (const auto& [given, expected] : cases) {
    const auto message = b.refusal_of(tools + R"(,"tool_choice":)" + given);
    INFO(given << " -> " << message);
    CHECK(contains(message, expected));
  }
  CHECK(contains(b.refusal_of(R"("tool_choice":{"type":"any"})"),
                 "`tool_choice.type` must be \"auto\" or \"none\" without tools"));
  CHECK(b.refusal_of(R"("tools":[],"tool_choice":{"type":"auto"})").empty());
}

TEST_CASE("Messages: a broken field is refused by its name") {
  fixture b;
  const std::pair<const char*, const char*> cases[] = {
      {R"("max_tokens":-1)", "`max_tokens` must be >= 0, got -1"},
      {R"("max_tokens":1.5)", "`max_tokens` must be"},
      {R"("max_tokens":null)", "`max_tokens` must be given, got nothing"},
      {R"("temperature":"hot")", "`temperature` must be a number, got \"hot\""},
      {R"("top_p":2)", "`top_p` must be between 0 and 1, got 2"},
      {R"("top_k":-5)", "`top_k` must be -1 or more, got -5"},
      {R"("stream":1)", "`stream` must be true or false, got 1"},
      {R"("stop_sequences":"x")", "`stop_sequences` must be a list of strings, got \"x\""},
      {R"("stop_sequences":[1])", "`stop_sequences[0]` must be a string, got 1"},
      {R"("stop_sequences":[""])", "`stop_sequences` must have no empty entry"},
      {R"("n":2)", "`n` must be absent"},
      {R"("system":5)", "`system` must be a string or a list of blocks, got 5"},
      {R"("system":[{"type":"image"}])", "`system[0].type` must be \"text\""},
      {R"("system":[{"type":"text"}])", "`system[0].text` must be a string, got null"},
      {R"("thinking":true)", "`thinking` must be an object, got true"},
      {R"("thinking":{})", "`thinking.type` must be \"enabled\""},
      {R"("thinking":{"type":"some"})", "`thinking.type` must be \"enabled\""},
      {R"("thinking":{"type":"enabled","budget_tokens":"9"})", "`thinking.budget_tokens` must be"},
      {R"("thinking":{"type":"enabled","display":"all"})",
       "`thinking.display` must be \"summarized\" or \"omitted\", got \"all\""},
      {R"("metadata":"me")", "`metadata` must be an object, got \"me\""},
      {R"("service_tier":5)", "`service_tier` must be a string, got 5"},
      {R"("container":"c")", "`container` must be absent"},
      {R"("mcp_servers":[{"type":"url","url":"https://x"}])",
       "`mcp_servers` must be empty or absent"},
      {R"("context_management":{"edits":[{"type":"compact_20260112"}]})",
       "`context_management.edits[0].type` must be an edit that clears thinking or tool uses"},
      {R"("context_management":{"edits":5})", "`context_management.edits` must be a list, got 5"},
      {R"("output_config":{"effort":3})", "`output_config.effort` must be a string, got 3"},
      {R"("output_config":{"format":{"type":"text"}})",
       "`output_config.format.type` must be \"json_schema\", got \"text\""},
      {R"("output_format":{"type":"json_schema"})", "`output_format.schema` must be given"},
      {R"("output_format":{"type":"json_schema","schema":{},"strict":true})",
       "`output_format.strict` must be absent"},
      {R"("output_format":{"type":"json_schema","schema":{}},
          "output_config":{"format":{"type":"json_schema","schema":{}}})",
       "`output_format.schema` must be absent when `output_config.format.schema` is given as "
       "well"},
      {R"("tools":{})", "`tools` must be a list of tools, got {}"},
      {R"("tools":["f"])", "`tools[0]` must be an object, got \"f\""},
      {R"("tools":[{"type":"web_search_20250305","name":"web_search"}])",
       "`tools[0].type` must be \"custom\" or absent: this server has none of Anthropic's own "
       "tools, got \"web_search_20250305\""},
      {R"("tools":[{"type":"bash_20250124","name":"bash"}])", "`tools[0].type` must be"},
      {R"("tools":[{"name":"f"}])",
       "`tools[0].input_schema` must be a JSON Schema, an object, got null"},
      {R"("tools":[{"name":"","input_schema":{}}])", "`tools[0].name` must be"},
      {R"("tools":[{"name":"f","input_schema":{},"description":1}])",
       "`tools[0].description` must be a string, got 1"},
      {R"("tools":[{"name":"f","input_schema":{}},{"name":"f","input_schema":{}}])",
       "`tools[1].name` must be unlike the names of the other tools"},
      {R"("tools":[{"name":"f","input_schema":{},"allowed_callers":["code_execution_20250825"]}])",
       "`tools[0].allowed_callers` must be a list with \"direct\""},
  };
  for (const auto& [members, expected] : cases) {
    const auto message = b.refusal_of(members);
    INFO(members << " -> " << message);
    CHECK(contains(message, expected));
  }
  const std::pair<const char*, const char*> contents[] = {
      {"{}", "`messages` must be a list of at least one message, got {}"},
      {"[]", "`messages` must be a list of at least one message, got []"},
      {"[1]", "`messages[0]` must be an object, got 1"},
      {R"([{"content":"x"}])", "`messages[0].role` must be \"user\", \"assistant\" or \"system\""},
      {R"([{"role":"tool","content":"x"}])", "`messages[0].role` must be"},
      {R"([{"role":"user"}])", "`messages[0].content` must be a string or a list of blocks"},
      {R"([{"role":"user","content":7}])", "`messages[0].content` must be a string or a list"},
      {R"([{"role":"user","content":["x"]}])", "`messages[0].content[0]` must be a block"},
      {R"([{"role":"user","content":[{"type":"text","text":1}]}])",
       "`messages[0].content[0].text` must be a string, got 1"},
      {R"([{"role":"user","content":[{"type":"image","source":{}}]}])",
       "`messages[0].content[0].type` must be \"text\" or \"tool_result\" in a message of this "
       "role, as no model here reads images or documents"},
      {R"([{"role":"user","content":[{"type":"document","source":{}}]}])",
       "`messages[0].content[0].type` must be"},
      {R"([{"role":"user","content":[{"type":"search_result","source":"x"}]}])",
       "`messages[0].content[0].type` must be"},
      {R"([{"role":"user","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}])",
       "`messages[0].content[0].type` must be"},
      {R"([{"role":"assistant","content":[{"type":"server_tool_use","id":"a"}]}])",
       "`messages[0].content[0].type` must be"},
      {R"([{"role":"assistant","content":[{"type":"tool_use","name":"f","input":{}}]}])",
       "`messages[0].content[0].id` must be a string that is not empty, got null"},
      {R"([{"role":"assistant","content":[{"type":"tool_use","id":"a","input":{}}]}])",
       "`messages[0].content[0].name` must be a string that is not empty, got null"},
      {R"([{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":[]}]}])",
       "`messages[0].content[0].input` must be an object, got []"},
      {R"([{"role":"assistant","content":[{"type":"thinking","thinking":4}]}])",
       "`messages[0].content[0].thinking` must be a string, got 4"},
      {R"([{"role":"user","content":[{"type":"tool_result"}]}])",
       "`messages[0].content[0].tool_use_id` must be a string that is not empty, got null"},
      {R"([{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":5}]}])",
       "`messages[0].content[0].content` must be a string or a list of text blocks, got 5"},
      {R"([{"role":"user","content":[{"type":"tool_result","tool_use_id":"a",
             "content":[{"type":"image","source":{}}]}]}])",
       "`messages[0].content[0].content[0].type` must be \"text\""},
      {R"([{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":"no"}]}])",
       "`messages[0].content[0].is_error` must be true or false, got \"no\""},
      {R"([{"role":"system","content":[{"type":"tool_result","tool_use_id":"a"}]}])",
       "`messages[0].content[0].type` must be \"text\" in what the system says"},
  };
  for (const auto& [messages, expected] : contents) {
    const auto message = b.refusal_of_messages(messages);
    INFO(messages << " -> " << message);
    CHECK(contains(message, expected));
  }
  CHECK(b.refusal(R"({"max_tokens":5})") == "`messages` must be given, got nothing");
  CHECK(b.refusal(R"({"messages":[{"role":"user","content":"x"}]})") ==
        "`max_tokens` must be given, got nothing");
  std::string many = R"({"name":"f0","input_schema":{}})";
  for (int i = 1; i <= 128; ++i)
    many += R"(,{"name":"f)" + std::to_string(i) + R"(","input_schema":{}})";
  CHECK(
      contains(b.refusal_of(R"("tools":[)" + many + "]"), "`tools` must be a list of at most 128"));
}

TEST_CASE("Messages: counting tokens reads the same prompt, and needs no max_tokens") {
  fixture b;
  const auto count = [&](const std::string& body) {
    auto counted = count_tokens_body(json(body), b.context);
    return counted.ok() ? counted.value() : counted.code().message;
  };
  const auto asked = b.ask(full_message);
  const auto ids =
      b.engine.tokenize_chat("test-model", std::get<actors::chat_prompt>(asked.prompt));
  REQUIRE(ids.ok());
  CHECK(count(full_message) == R"({"input_tokens":)" + std::to_string(ids.value().size()) + "}");
  CHECK(contains(count(R"({"messages":[{"role":"user","content":"x"}]})"), R"({"input_tokens":)"));
  CHECK(count("{}") == "`messages` must be given, got nothing");
  CHECK(contains(count(R"({"messages":[{"role":"user","content":"x"}],"tools":[{"name":"f"}]})"),
                 "`tools[0].input_schema` must be"));
}

TEST_CASE(
    "Messages: a body that is damaged at random is accepted, or refused by the name of a field") {
  fixture b;
  fuzz::generator random(
      std::getenv("TWILL_SEED") != nullptr ? std::stoull(std::getenv("TWILL_SEED")) : 6500);
  const value odd[] = {value(),
                       value(true),
                       value(-1),
                       value(1e300),
                       value(""),
                       value("x"),
                       value_list{},
                       value_object{},
                       value_list{value_list{value(1)}},
                       value("custom"),
                       value("tool_result"),
                       value(std::string(5000, 'y'))};
  // Replaces, removes or repeats one value somewhere in the tree.
  const std::function<value(const value&, std::size_t&)> damaged = [&](const value& v,
                                                                       std::size_t& left) -> value {
    if (left-- == 0) return odd[fuzz::draw(random, std::size(odd))];
    if (const auto* list = v.as_list()) {
      value_list out;
      for (const auto& item : *list) {
        const auto before = left;
        out.push_back(damaged(item, left));
        const bool here = left > before; // `left` wrapped around: this item was damaged
        if (here && fuzz::draw(random, 4) == 0) out.push_back(item);
      }
      return out;
    }
    if (const auto* object = v.as_object()) {
      value_object out;
      for (const auto& [key, member] : *object) {
        const auto before = left;
        auto made = damaged(member, left);
        if (left > before && fuzz::draw(random, 3) == 0) continue;
        out.emplace_back(key, std::move(made));
      }
      return out;
    }
    return v;
  };
  const std::string* bodies[] = {&short_message, &full_message, &begun_message};
  std::size_t refused = 0, accepted = 0;
  for (int i = 0; i < test::cases_here(20'000); ++i) {
    value body = json(*bodies[fuzz::draw(random, 3)]);
    for (std::size_t n = 1 + fuzz::draw(random, 3); n > 0; --n) {
      std::size_t left = 1 + fuzz::draw(random, 120);
      body = damaged(body, left);
    }
    if (body.as_object() == nullptr) continue;
    auto made = parse_messages(body, b.context);
    const auto counted = count_tokens_body(body, b.context);
    if (!made.ok()) {
      ++refused;
      REQUIRE(std::holds_alternative<errc>(made.code().code));
      REQUIRE(!made.code().param.empty());
      REQUIRE(contains(made.code().message, "`" + made.code().param + "`"));
      continue;
    }
    ++accepted;
    REQUIRE(counted.ok());
    REQUIRE(made.value().requests.size() == 1);
    const auto& chat = std::get<actors::chat_prompt>(made.value().requests[0].prompt);
    REQUIRE(chat.messages.as_list() != nullptr);
    REQUIRE(!chat.messages.as_list()->empty());
    std::string out;
    made.value().encoder->on_event(0, started(), out);
    made.value().encoder->on_event(0, piece("a"), out);
    made.value().encoder->on_event(0, finished(), out);
    made.value().encoder->on_end(out);
    REQUIRE((made.value().stream || parse_json(out).ok()));
  }
  CHECK(refused > 0);
  CHECK(accepted > 0);
}

TEST_CASE("Messages: every error has Anthropic's form") {
  const auto styled = [](auto code, const std::string& message = "no", const char* id = "req_1") {
    return style_error({code, message, ""}, api_style::anthropic, id);
  };
  const auto type_of = [&](auto code) {
    const auto error = json(styled(code).body);
    CHECK(at(error, "type") == value("error"));
    CHECK(at(error, "request_id") == value("req_1"));
    CHECK(contains(*at(error, "error", "message").as_string(), "no"));
    return std::to_string(styled(code).http_status) + " " + *at(error, "error", "type").as_string();
  };
  CHECK(type_of(errc::invalid_field) == "400 invalid_request_error");
  CHECK(type_of(errc::bad_json) == "400 invalid_request_error");
  CHECK(type_of(errc::unauthorized) == "401 authentication_error");
  CHECK(type_of(errc::foreign_origin) == "403 permission_error");
  CHECK(type_of(errc::unknown_route) == "404 not_found_error");
  CHECK(type_of(errc::method_not_allowed) == "405 invalid_request_error");
  CHECK(type_of(errc::request_timeout) == "408 timeout_error");
  CHECK(type_of(errc::body_too_large) == "413 request_too_large");
  CHECK(type_of(errc::content_coding) == "415 invalid_request_error");
  CHECK(type_of(errc::too_many_sockets) == "429 rate_limit_error");
  CHECK(type_of(errc::head_too_large) == "431 invalid_request_error");
  CHECK(type_of(errc::busy) == "503 overloaded_error");
  CHECK(type_of(errc::storage_full) == "507 api_error");
  CHECK(type_of(actors::errc::unknown_model) == "404 not_found_error");
  CHECK(type_of(actors::errc::queue_full) == "429 rate_limit_error");
  CHECK(type_of(actors::errc::not_ready) == "503 overloaded_error");
  CHECK(type_of(actors::errc::executor_failed) == "500 api_error");
  for (const auto code : {actors::errc::context_too_long, actors::errc::too_large})
    CHECK(styled(code, "9 > 8").body ==
          R"({"type":"error","error":{"type":"invalid_request_error","message":"prompt is too )"
          R"(long: 9 > 8"},"request_id":"req_1"})");
}

TEST_CASE("Messages: pages of models") {
  std::vector<actors::model_info> models(5);
  for (int i = 0; i < 5; ++i)
    models[static_cast<std::size_t>(i)].id = "m" + std::to_string(i);
  models[0].created_unix_s = 1'000'000'000;
  models[0].max_model_len = 4096;
  const auto page = [&](model_cursor cursor) {
    const auto made = model_page_body(models, cursor);
    if (!made.ok()) return made.code().message;
    const auto body = json(made.value());
    std::string ids;
    for (const auto& model : *at(body, "data").as_list())
      ids += *at(model, "id").as_string() + " ";
    if (ids.empty()) {
      CHECK(at(body, "first_id").is_null());
      CHECK(at(body, "last_id").is_null());
    } else {
      CHECK(ids.starts_with(*at(body, "first_id").as_string()));
      CHECK(ids.ends_with(*at(body, "last_id").as_string() + " "));
    }
    return ids + (at(body, "has_more") == value(true) ? "more" : "");
  };
  CHECK(json(anthropic_model_body(models[0])) ==
        json(R"({"type":"model","id":"m0","display_name":"m0","created_at":"2001-09-09T01:46:40Z",
                 "lifecycle":"active","max_input_tokens":4096,"max_tokens":4096})"));
  CHECK(page({}) == "m0 m1 m2 m3 m4 ");
  CHECK(page({5, "", ""}) == "m0 m1 m2 m3 m4 ");
  CHECK(page({2, "", ""}) == "m0 m1 more");
  CHECK(page({2, "", "m1"}) == "m2 m3 more");
  CHECK(page({2, "", "m3"}) == "m4 ");
  CHECK(page({2, "", "m4"}) == "");
  CHECK(page({2, "m4", ""}) == "m2 m3 more");
  CHECK(page({2, "m1", ""}) == "m0 ");
  CHECK(page({2, "m0", ""}) == "");
  CHECK(contains(page({2, "", "x"}), "`after_id` must be the id of a model"));
  CHECK(contains(page({2, "x", ""}), "`before_id` must be the id of a model"));
  CHECK(contains(page({2, "m1", "m2"}), "`before_id` must be absent"));
}
