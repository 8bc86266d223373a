// Structured output and tools: how requests become engine requests, and how replies show tool
// calls.
#include <set>

#include "net/protocol/openai/chat.hpp"
#include "net/protocol/openai/completions.hpp"
#include "net/protocol/openai/responses_reply.hpp"
#include "net/protocol/openai/responses_socket.hpp"
#include "net/protocol/stream/stream_dialect.hpp"
#include "tests/catch.hpp"
#include "tests/net/support/codec_support.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::testing;

namespace {

using form = config::grammar_spec;
using part = actors::output_part;
using choice = actors::tool_choice_kind;

const std::string hi = R"("messages":[{"role":"user","content":"hi"}])";
const std::string weather =
    R"("tools":[{"type":"function","function":{"name":"weather","description":"d",
       "parameters":{"type":"object","properties":{"city":{"type":"string"}}}}},
       {"type":"function","function":{"name":"time"}}])";

actors::request chat_request(codec_fixture& b, const std::string& members) {
  auto made = parse_chat(json("{" + hi + "," + members + "}"), b.context);
  if (!made.ok()) throw std::runtime_error(made.code().message);
  return made.value().requests.at(0);
}

std::string chat_error(codec_fixture& b, const std::string& members) {
  const auto made = parse_chat(json("{" + members + "}"), b.context);
  return made.ok() ? "" : made.code().message;
}

part make_part(actors::output_part_kind what, std::string text, int call = -1) {
  return {what, std::move(text), call, true};
}

actors::event parts(std::vector<part> given, std::int32_t n_tokens = 1) {
  actors::event ev;
  ev.parts = std::move(given);
  for (std::int32_t i = 0; i < n_tokens; ++i)
    ev.tokens.push_back({{100 + i, "t", -0.5f}, {}});
  return ev;
}

/// An answer with reasoning, a text and two calls, in the pieces that an engine may give.
std::vector<actors::event> answer(actors::finish_reason why = actors::finish_reason::tool_calls) {
  return {started(),
          parts({make_part(actors::output_part_kind::reasoning, "hm")}),
          parts({make_part(actors::output_part_kind::text, "I ask.")}),
          parts({}),
          parts({make_part(actors::output_part_kind::call_begin, "weather", 0)}),
          parts({make_part(actors::output_part_kind::call_arguments, "{\"city\":", 0)}),
          parts({make_part(actors::output_part_kind::call_arguments, "\"Rom\"}", 0),
                 make_part(actors::output_part_kind::call_end, "", 0)}),
          parts({make_part(actors::output_part_kind::call_begin, "time", 1),
                 make_part(actors::output_part_kind::call_arguments, "{}", 1),
                 make_part(actors::output_part_kind::call_end, "", 1)}),
          finished(why)};
}

std::string play(net::result<call> made, std::vector<actors::event> events) {
  if (!made.ok()) throw std::runtime_error(made.code().message);
  std::string out;
  for (auto& ev : events)
    made.value().encoder->on_event(0, std::move(ev), out);
  made.value().encoder->on_end(out);
  return out;
}

std::vector<value> data_of(const std::string& stream) {
  std::vector<value> out;
  for (std::size_t at = stream.find("data: "); at != std::string::npos;
       at = stream.find("data: ", at + 1)) {
    const auto line = stream.substr(at + 6, stream.find('\n', at) - at - 6);
    if (line != "[DONE]") out.push_back(json(line));
  }
  return out;
}

} // namespace

TEST_CASE("Every spelling of a form reaches the engine as a grammar") {
  codec_fixture b;
  const auto of = [&](const std::string& members) {
    const auto asked = chat_request(b, members).grammar;
    auto made = parse_completions(json(R"({"prompt":"x",)" + members + "}"), b.context);
    REQUIRE(made.ok());
    CHECK(made.value().requests[0].grammar == asked);
    REQUIRE(asked.has_value());
    return *asked;
  };
  const std::string schema = R"({"type":"object","properties":{"a":{"type":"integer"}}})";
  const form as_schema{.kind = config::grammar_kind::json_schema, .text = schema};
  const form strictly{
      .kind = config::grammar_kind::json_schema, .text = schema, .closed_objects = true};
  CHECK(of(R"("response_format":{"type":"json_object"})").kind ==
        config::grammar_kind::json_object);
  CHECK(of(R"("response_format":{"type":"json_schema","json_schema":{"name":"n","strict":false,
              "schema":)" +
           schema + "}}") == as_schema);
  // Most clients do not send `strict`.
  CHECK(of(R"("response_format":{"type":"json_schema","json_schema":{"name":"n","schema":)" +
           schema + "}}") == strictly);
  CHECK(of(R"("response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,
              "schema":)" +
           schema + "}}") == strictly);
  // The servers that define these fields close the schema's objects.
  CHECK(of(R"("guided_json":)" + schema) == strictly);
  CHECK(
      of(R"("guided_json":"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}}}")") ==
      strictly);
  CHECK(of(R"("structured_outputs":{"json":)" + schema + "}") == strictly);
  CHECK(of(R"("structured_outputs":{"disable_additional_properties":false,"json":)" + schema +
           "}") == as_schema);
  CHECK(of(R"("json_schema":)" + schema) == strictly);
  CHECK(of(R"("guided_regex":"[ab]+")") ==
        form{.kind = config::grammar_kind::regex, .text = "[ab]+"});
  CHECK(of(R"("structured_outputs":{"choice":["x","y"]})") ==
        form{.kind = config::grammar_kind::choice, .choices = {"x", "y"}});
  CHECK(of(R"("grammar":"root ::= \"a\"")") ==
        form{.kind = config::grammar_kind::ebnf, .text = "root ::= \"a\""});
  CHECK(of(R"("guided_grammar":"root ::= \"a\"","guided_json":null)").kind ==
        config::grammar_kind::ebnf);
  CHECK(of(R"("structured_outputs":{"json_object":true})").kind ==
        config::grammar_kind::json_object);
  for (const auto* none :
       {R"("response_format":{"type":"text"})", R"("grammar":"")", R"("seed":1)"})
    CHECK(!chat_request(b, none).grammar.has_value());

  auto made = parse_response_turn(
      json(
          R"({"input":"x","text":{"format":{"type":"json_schema","name":"n","strict":true,"schema":)" +
          schema + "}}}"),
      b.context, [](const std::string&) { return remembered_ptr(); });
  REQUIRE(made.ok());
  CHECK(made.value().request.grammar == strictly);
  CHECK(at(made.value().echo.text, "format", "name") == value("n"));
}

TEST_CASE("The engine request names the field by which a client asked for a format") {
  codec_fixture b;
  const std::string schema = R"({"type":"object"})";
  const std::pair<std::string, const char*> cases[] = {
      {R"("response_format":{"type":"json_object"})", "response_format"},
      {R"("response_format":{"type":"json_schema","json_schema":{"name":"n","schema":)" + schema +
           "}}",
       "response_format"},
      {R"("guided_json":)" + schema, "guided_json"},
      {R"("structured_outputs":{"json":)" + schema + "}", "structured_outputs.json"},
      {R"("json_schema":)" + schema, "json_schema"},
      {R"("grammar":"root ::= \"a\"")", "grammar"},
      {R"("seed":1)", ""},
  };
  for (const auto& [members, field] : cases)
    CHECK(chat_request(b, members).grammar_field == field);
  auto made = parse_response_turn(
      json(R"({"input":"x","text":{"format":{"type":"json_schema","name":"n","schema":)" + schema +
           "}}}"),
      b.context, [](const std::string&) { return remembered_ptr(); });
  REQUIRE(made.ok());
  CHECK(made.value().request.grammar_field == "text.format");
}

TEST_CASE("A form that contradicts another, is unknown or too large is refused by name") {
  codec_fixture b;
  const std::pair<std::string, const char*> cases[] = {
      {R"("response_format":7)", "`response_format` must be an object, got 7"},
      {R"("response_format":{"type":"xml"})",
       R"(`response_format.type` must be "text", "json_object" or "json_schema", got "xml")"},
      {R"("response_format":{"type":"json_schema"})",
       "`response_format.json_schema` must be given, got nothing"},
      {R"("response_format":{"type":"json_schema","json_schema":{"name":"x"}})",
       "`response_format.json_schema.schema` must be given, got nothing"},
      {R"("response_format":{"type":"json_schema","json_schema":{"schema":5}})",
       "`response_format.json_schema.schema` must be an object, got 5"},
      {R"("response_format":{"type":"json_object","indent":2})",
       "`response_format.indent` must be absent: this server does not know it, got 2"},
      {R"("guided_regex":"a","guided_choice":["b"])",
       "`guided_choice` must be absent when `guided_regex` is given as well"},
      {R"("response_format":{"type":"json_object"},"grammar":"root ::= \"a\"")",
       "`grammar` must be absent when `response_format` is given as well"},
      {R"("structured_outputs":{"regex":"a","choice":["b"]})",
       "`structured_outputs.choice` must be absent when `structured_outputs.regex` is given"},
      {R"("structured_outputs":{})", "`structured_outputs` must be an object with one of json"},
      {R"("structured_outputs":{"regex":"a","color":1})",
       "`structured_outputs.color` must be absent"},
      {R"("structured_outputs":{"regex":"a","disable_any_whitespace":true})",
       "`structured_outputs.disable_any_whitespace` must be false"},
      {R"("guided_json":"no json")", "`guided_json` must be a JSON Schema"},
      {R"("guided_choice":["a",5])",
       "`guided_choice[1]` must be a string that is not empty, got 5"},
      {R"("guided_regex":5)", "`guided_regex` must be a text that is not empty, got 5"},
      {R"("structural_tag":{"a":1})", "`structural_tag` must be absent"},
      {R"("grammar":")" + std::string(300'000, 'x') + "\"",
       "`grammar` must be at most 262144 bytes, got 300000"},
  };
  for (const auto& [members, expected] : cases) {
    const auto message = chat_error(b, hi + "," + members);
    INFO(members.substr(0, 200) << " -> " << message);
    CHECK(contains(message, expected));
  }
}

TEST_CASE("Tools and the choice among them, in every spelling") {
  codec_fixture b;
  auto asked = chat_request(b, weather);
  CHECK(asked.parse_output);
  CHECK(asked.tools.kind == choice::automatic);
  CHECK(asked.tools.parallel);
  CHECK(chat_request(b, weather + R"(,"tool_choice":"required","parallel_tool_calls":false)")
            .tools.kind == choice::required);
  for (const auto* named : {R"({"type":"function","function":{"name":"time"}})",
                            R"({"type":"function","name":"time"})"}) {
    asked = chat_request(b, weather + R"(,"tool_choice":)" + named);
    CHECK(asked.tools.kind == choice::named);
    CHECK(asked.tools.name == "time");
  }
  asked =
      chat_request(b, R"("functions":[{"name":"f","parameters":{}}],"function_call":{"name":"f"})");
  CHECK(asked.tools.kind == choice::named);
  CHECK(!asked.tools.parallel);
  const auto& chat = std::get<actors::chat_prompt>(asked.prompt);
  CHECK(at(chat.tools, 0) ==
        json(R"({"type":"function","function":{"name":"f","parameters":{}}})"));

  const std::pair<std::string, const char*> cases[] = {
      {R"("tools":5)", "`tools` must be a list of tools, got 5"},
      {R"("tools":[{"type":"web_search"}])", "`tools[0].type` must be \"function\": this server "
                                             "runs no tools itself, got \"web_search\""},
      {R"("tools":[{"type":"function","function":{"name":"a b"}}])",
       "`tools[0].function.name` must be 1 to 128 letters, digits"},
      {R"("tools":[{"type":"function","name":"a"},{"type":"function","name":"a"}])",
       "`tools[1].name` must be unlike the names of the other tools, got \"a\""},
      {R"("tools":[{"type":"function","function":{"name":"a"}},
                   {"type":"function","function":{"name":"a"}}])",
       "`tools[1].function.name` must be unlike the names of the other tools, got \"a\""},
      {R"("tools":[{"type":"function","name":"a","parameters":[1]}])",
       "`tools[0].parameters` must be a JSON Schema, an object, got [1]"},
      {R"("tools":[{"type":"function","name":"a","strict":1}])",
       "`tools[0].strict` must be true or false, got 1"},
      {weather + R"(,"tool_choice":"any")",
       R"(`tool_choice` must be "auto", "none", "required" or)"},
      {weather + R"(,"tool_choice":{"type":"function","name":"g"})",
       "`tool_choice` must be the name of one of the tools of this request"},
      {weather + R"(,"tool_choice":{"type":"file_search"})",
       "`tool_choice.type` must be \"function\""},
      {weather + R"(,"functions":[])", "`functions` must be absent when `tools` is given"},
      {weather + R"(,"tool_choice":"auto","function_call":"auto")",
       "`function_call` must be absent when `tool_choice` is given"},
      {R"("functions":[5])", "`functions[0]` must be an object, got 5"},
  };
  for (const auto& [members, expected] : cases) {
    const auto message = chat_error(b, hi + "," + members);
    INFO(members << " -> " << message);
    CHECK(contains(message, expected));
  }
}

TEST_CASE("Of allowed tools the model sees no others") {
  codec_fixture b;
  const auto chat_form = [](const std::string& mode) {
    return R"(,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":")" + mode +
           R"(","tools":[{"type":"function","function":{"name":"time"}}]}})";
  };
  for (const auto& [mode, what] :
       {std::pair{"auto", choice::automatic}, std::pair{"required", choice::required}}) {
    const auto asked = chat_request(b, weather + chat_form(mode));
    CHECK(asked.tools.kind == what);
    const auto& tools = std::get<actors::chat_prompt>(asked.prompt).tools;
    REQUIRE(tools.as_list() != nullptr);
    REQUIRE(tools.as_list()->size() == 1);
    CHECK(at(tools, 0, "function", "name") == value("time"));
  }
  const auto made = parse_response_turn(
      json(R"({"input":"x","tools":[{"type":"function","name":"a"},{"type":"function","name":"b"}],
          "tool_choice":{"type":"allowed_tools","mode":"required",
                         "tools":[{"type":"function","name":"b"}]}})"),
      b.context, [](const std::string&) { return remembered_ptr(); });
  REQUIRE(made.ok());
  CHECK(made.value().request.tools.kind == choice::required);
  const auto& tools = std::get<actors::chat_prompt>(made.value().request.prompt).tools;
  REQUIRE(tools.as_list()->size() == 1);
  CHECK(at(tools, 0, "function", "name") == value("b"));
  CHECK(made.value().echo.tools.as_list()->size() == 2);

  const auto refused = [&](const std::string& allowed) {
    return chat_error(b, hi + "," + weather +
                             R"(,"tool_choice":{"type":"allowed_tools","allowed_tools":)" +
                             allowed + "}");
  };
  CHECK(contains(refused(R"({"mode":"none","tools":[]})"),
                 R"(`tool_choice.allowed_tools.mode` must be "auto" or "required", got "none")"));
  CHECK(contains(refused(R"({"mode":"auto","tools":[]})"),
                 "`tool_choice.allowed_tools.tools` must be a list of 1 to 128 tools, got []"));
  CHECK(
      contains(refused(R"({"mode":"auto","tools":[{"type":"function","function":{"name":"x"}}]})"),
               "`tool_choice.allowed_tools.tools[0]` must be the name of one of the tools"));
  CHECK(contains(refused(R"({"mode":"auto","tools":[{"type":"mcp"}]})"),
                 "`tool_choice.allowed_tools.tools[0].type` must be \"function\""));
  CHECK(contains(refused("7"), "`tool_choice.allowed_tools.mode` must be"));
}

TEST_CASE("Messages of an agent's loop come in one form, whoever wrote them") {
  codec_fixture b;
  auto made = parse_chat(json(R"({"messages":[
      {"role":"developer","content":[{"type":"input_text","text":"a"}]},
      {"role":"user","content":"q","name":"Ada"},
      {"role":"assistant","refusal":null,"audio":null,"function_call":null,"annotations":[],
       "tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}},
                     {"id":"c2","type":"function","function":{"name":"g","arguments":{"y":2}}},
                     {"id":"c3","type":"function","function":{"name":"h","arguments":""}}]},
      {"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"two"}]},
      {"role":"assistant","content":null,"refusal":"no"},
      {"role":"assistant","content":null,"function_call":{"name":"old","arguments":"{}"}},
      {"role":"function","name":"old","content":"r"}]})"),
                         b.context);
  REQUIRE(made.ok());
  const auto& chat = std::get<actors::chat_prompt>(made.value().requests[0].prompt);
  CHECK(chat.messages == json(R"([
      {"role":"developer","content":"a"},
      {"role":"user","content":"q","name":"Ada"},
      {"role":"assistant","content":null,
       "tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}},
                     {"id":"c2","type":"function","function":{"name":"g","arguments":{"y":2}}},
                     {"id":"c3","type":"function","function":{"name":"h","arguments":{}}}],
       "annotations":[]},
      {"role":"tool","content":"two","tool_call_id":"c2","name":"g"},
      {"role":"assistant","content":"no"},
      {"role":"assistant","content":null,"tool_calls":[{"id":"call_function","type":"function",
       "function":{"name":"old","arguments":"{}"}}]},
      {"role":"tool","content":"r","tool_call_id":"call_function","name":"old"}])"));

  const std::pair<const char*, const char*> cases[] = {
      {R"([{"role":"assistant","tool_calls":5}])",
       "`messages[0].tool_calls` must be a list of tool calls, got 5"},
      {R"([{"role":"assistant","tool_calls":[{"id":"x"}]}])",
       "`messages[0].tool_calls[0].function` must be an object, got null"},
      {R"([{"role":"assistant","tool_calls":[{"function":{"arguments":"{}"}}]}])",
       "`messages[0].tool_calls[0].function.name` must be the name of a function, got null"},
      {R"([{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":7}}]}])",
       "`messages[0].tool_calls[0].function.arguments` must be a JSON text or an object, got 7"},
      {R"([{"role":"user","content":"x"},{"role":"tool","tool_call_id":"x"}])",
       "`messages[1].content` must be a string or a list of text parts"},
  };
  for (const auto& [messages, expected] : cases) {
    const auto message = chat_error(b, R"("messages":)" + std::string(messages));
    INFO(messages << " -> " << message);
    CHECK(contains(message, expected));
  }
}

TEST_CASE("A chat reply has the calls, whole") {
  codec_fixture b;
  const auto body =
      json(play(parse_chat(json("{" + hi + "," + weather + "}"), b.context), answer()));
  const auto& message = at(body, "choices", 0, "message");
  CHECK(at(message, "content") == value("I ask."));
  CHECK(at(message, "reasoning_content") == value("hm"));
  CHECK(at(message, "tool_calls").as_list()->size() == 2);
  CHECK(at(message, "tool_calls", 0, "type") == value("function"));
  CHECK(at(message, "tool_calls", 0, "id").as_string()->starts_with("call_"));
  CHECK(at(message, "tool_calls", 0, "function") ==
        json(R"({"name":"weather","arguments":"{\"city\":\"Rom\"}"})"));
  CHECK(at(message, "tool_calls", 1, "function", "name") == value("time"));
  CHECK(at(body, "choices", 0, "finish_reason") == value("tool_calls"));
  CHECK(at(body, "usage", "completion_tokens") == value(7));

  auto only_calls = answer();
  only_calls.erase(only_calls.begin() + 1, only_calls.begin() + 3);
  const auto silent = json(play(
      parse_chat(json("{" + hi + "," + weather + R"(,"parallel_tool_calls":false})"), b.context),
      only_calls));
  CHECK(at(silent, "choices", 0, "message", "content").is_null());
  CHECK(at(silent, "choices", 0, "message", "tool_calls").as_list()->size() == 1);

  const auto legacy = json(play(
      parse_chat(json("{" + hi + R"(,"functions":[{"name":"weather"}]})"), b.context), answer()));
  CHECK(at(legacy, "choices", 0, "message", "function_call") ==
        json(R"({"name":"weather","arguments":"{\"city\":\"Rom\"}"})"));
  CHECK(at(legacy, "choices", 0, "message").find("tool_calls") == nullptr);
  CHECK(at(legacy, "choices", 0, "finish_reason") == value("function_call"));
}

TEST_CASE("A chat stream has the calls in deltas that add up to the whole") {
  codec_fixture b;
  const auto chunks = data_of(
      play(parse_chat(json("{" + hi + "," + weather + R"(,"stream":true})"), b.context), answer()));
  std::map<std::int64_t, std::string> arguments;
  std::map<std::int64_t, std::string> names;
  std::set<std::string> ids;
  std::string content;
  for (const auto& chunk : chunks) {
    const auto& delta = at(chunk, "choices", 0, "delta");
    if (const auto* text = delta.find("content"); text != nullptr && text->as_string())
      content += *text->as_string();
    const auto* calls = delta.find("tool_calls");
    if (calls == nullptr) continue;
    for (const auto& call : *calls->as_list()) {
      const auto index = *at(call, "index").as_int();
      if (const auto* id = call.find("id")) {
        CHECK(ids.insert(*id->as_string()).second);
        names[index] = *at(call, "function", "name").as_string();
        CHECK(at(call, "type") == value("function"));
      }
      arguments[index] += *at(call, "function", "arguments").as_string();
    }
  }
  CHECK(at(chunks[0], "choices", 0, "delta") ==
        json(R"({"role":"assistant","content":"","reasoning_content":"hm"})"));
  CHECK(content == "I ask.");
  CHECK(names == std::map<std::int64_t, std::string>{{0, "weather"}, {1, "time"}});
  CHECK(arguments == std::map<std::int64_t, std::string>{{0, R"({"city":"Rom"})"}, {1, "{}"}});
  CHECK(at(chunks.back(), "choices", 0, "finish_reason") == value("tool_calls"));
}

TEST_CASE("Responses: reasoning, message and calls are items, and the next turn knows them") {
  codec_fixture b;
  const std::string tools = R"("tools":[{"type":"function","name":"weather","parameters":{}},
                                        {"type":"function","name":"time"}])";
  auto c = parse_responses(json(R"({"input":"hi","stream":true,)" + tools + "}"), b.context);
  REQUIRE(c.ok());
  b.store(c.value().stored.value(), answer());
  const auto events = data_of(play(std::move(c), answer()));
  std::string types, item;
  for (std::size_t i = 0; i < events.size(); ++i) {
    CHECK(at(events[i], "sequence_number") == value(static_cast<int>(i)));
    const std::string type = at(events[i], "type").as_string()->substr(9);
    types += type + " ";
    if (type == "output_item.added") item = *at(events[i], "item", "id").as_string();
    const auto* of = events[i].find("item_id");
    const bool within_item =
        type.find('.') != std::string::npos && !type.starts_with("output_item");
    REQUIRE((of != nullptr) == within_item);
    if (within_item) CHECK(*of == value(item));
  }
  CHECK(types == "created in_progress "
                 "output_item.added content_part.added reasoning_text.delta reasoning_text.done "
                 "content_part.done output_item.done "
                 "output_item.added content_part.added output_text.delta output_text.done "
                 "content_part.done output_item.done "
                 "output_item.added function_call_arguments.delta function_call_arguments.delta "
                 "function_call_arguments.done output_item.done "
                 "output_item.added function_call_arguments.delta function_call_arguments.done "
                 "output_item.done completed ");
  const auto& done = at(events.back(), "response");
  CHECK(at(done, "output").as_list()->size() == 4);
  CHECK(at(done, "output", 0, "type") == value("reasoning"));
  CHECK(at(done, "output", 0, "content", 0, "text") == value("hm"));
  CHECK(at(done, "output", 2, "arguments") == value(R"({"city":"Rom"})"));
  CHECK(at(done, "output", 2, "status") == value("completed"));
  CHECK(at(done, "usage", "output_tokens_details", "reasoning_tokens") == value(1));

  const auto call_id = *at(done, "output", 2, "call_id").as_string();
  auto next =
      parse_responses(json(R"({"previous_response_id":")" + *at(done, "id").as_string() + "\"," +
                           tools + R"(,"input":[{"type":"function_call_output","call_id":")" +
                           call_id + R"(","output":"warm"}]})"),
                      b.context);
  REQUIRE(next.ok());
  const auto& chat = std::get<actors::chat_prompt>(next.value().requests[0].prompt);
  REQUIRE(chat.messages.as_list()->size() == 3);
  CHECK(at(chat.messages, 1, "content") == value("I ask."));
  CHECK(at(chat.messages, 1, "tool_calls", 0, "function", "arguments") ==
        value(R"({"city":"Rom"})"));
  CHECK(at(chat.messages, 1, "tool_calls", 1, "function", "name") == value("time"));
  CHECK(at(chat.messages, 2) == json(R"({"role":"tool","content":"warm","tool_call_id":")" +
                                     call_id + R"(","name":"weather"})"));

  // A client that keeps the history itself sends the items back.
  auto own = parse_responses(
      json(R"({"input":[{"role":"user","content":"hi"},{"type":"reasoning","id":"r","summary":[]},
        {"type":"function_call","call_id":"a","name":"weather","arguments":"{}"},
        {"type":"function_call","call_id":"b","name":"time","arguments":"{}"},
        {"type":"function_call_output","call_id":"b","output":"12"}]})"),
      b.context);
  REQUIRE(own.ok());
  const auto& sent = std::get<actors::chat_prompt>(own.value().requests[0].prompt);
  CHECK(at(sent.messages, 1, "tool_calls").as_list()->size() == 2);
  CHECK(at(sent.messages, 2, "name") == value("time"));
}

TEST_CASE("The id that a model gave a call is the client's, and comes back as it is") {
  codec_fixture b;
  auto events = answer();
  events[4].parts[0].call_id = "abc123xyz";
  const std::string chat =
      R"({"messages":[{"role":"user","content":"q"}],"tools":[{"type":"function","function":{"name":
      "weather"}},{"type":"function","function":{"name":"time"}}])";
  const auto whole = json(play(parse_chat(json(chat + "}"), b.context), events));
  const auto& calls = at(whole, "choices", 0, "message", "tool_calls");
  CHECK(at(calls, 0, "id") == value("abc123xyz"));
  CHECK(at(calls, 1, "id").as_string()->starts_with("call_"));
  const auto streamed = play(parse_chat(json(chat + R"(,"stream":true})"), b.context), events);
  CHECK(contains(streamed, R"("id":"abc123xyz")"));

  const std::string asked = R"({"input":"hi","tools":[{"type":"function","name":"weather"},
                                                      {"type":"function","name":"time"}])";
  const auto response = json(play(parse_responses(json(asked + "}"), b.context), events));
  CHECK(at(response, "output", 2, "call_id") == value("abc123xyz"));
  CHECK(at(response, "output", 3, "call_id").as_string()->starts_with("call_"));
  const auto items =
      data_of(play(parse_responses(json(asked + R"(,"stream":true})"), b.context), events));
  CHECK(at(items.back(), "response", "output", 2, "call_id") == value("abc123xyz"));

  const auto back = parse_responses(json(R"({"input":[{"role":"user","content":"q"},
        {"type":"function_call","call_id":"abc123xyz","name":"weather","arguments":"{\"n\" : 1.50}"},
        {"type":"function_call_output","call_id":"abc123xyz","output":"12"}]})"),
                                    b.context);
  REQUIRE(back.ok());
  const auto& sent = std::get<actors::chat_prompt>(back.value().requests[0].prompt);
  CHECK(at(sent.messages, 1, "tool_calls", 0, "id") == value("abc123xyz"));
  CHECK(at(sent.messages, 1, "tool_calls", 0, "function", "arguments") == value(R"({"n" : 1.50})"));
  CHECK(at(sent.messages, 2, "tool_call_id") == value("abc123xyz"));
}

TEST_CASE("Responses: without parallel calls only the first is sent") {
  codec_fixture b;
  const std::string asked =
      R"("input":"hi","parallel_tool_calls":false,"tools":[{"type":"function","name":"weather"},
                                                           {"type":"function","name":"time"}])";
  const auto whole = json(play(parse_responses(json("{" + asked + "}"), b.context), answer()));
  CHECK(at(whole, "parallel_tool_calls") == value(false));
  CHECK(at(whole, "output").as_list()->size() == 3);
  CHECK(at(whole, "output", 2, "name") == value("weather"));
  CHECK(at(whole, "output", 2, "arguments") == value(R"({"city":"Rom"})"));
  const auto streamed =
      play(parse_responses(json("{\"stream\":true," + asked + "}"), b.context), answer());
  CHECK(!contains(streamed, R"("name":"time","arguments")"));
  CHECK(at(data_of(streamed).back(), "response", "output").as_list()->size() == 3);
}

TEST_CASE("Responses: a cut call is an incomplete item") {
  codec_fixture b;
  std::vector<actors::event> events = {
      started(), parts({make_part(actors::output_part_kind::call_begin, "f", 0),
                        make_part(actors::output_part_kind::call_arguments, "{\"a", 0)})};
  auto end = finished(actors::finish_reason::length);
  end.parts = {{actors::output_part_kind::call_end, "", 0, false}};
  events.push_back(end);
  const auto body = json(play(
      parse_responses(json(R"({"input":"x","tools":[{"type":"function","name":"f"}]})"), b.context),
      events));
  CHECK(at(body, "status") == value("incomplete"));
  CHECK(at(body, "output", 0, "type") == value("function_call"));
  CHECK(at(body, "output", 0, "status") == value("incomplete"));
}

TEST_CASE("An echoed prompt comes with its scores, and prompt_logprobs with ranks") {
  codec_fixture b;
  const auto score = [](std::int32_t id, std::string text, float logprob) {
    return actors::token_output{{id, std::move(text), logprob}, {{7, "~", -0.125f}}};
  };
  auto first = started(3);
  first.prompt_scores = {score(1, "<s>", std::numeric_limits<float>::quiet_NaN()),
                         score(5, "a", -1.5f), score(6, "é", -2.5f)};
  first.prompt_scores[0].top.clear();
  const auto body = json(
      play(parse_completions(
               json(R"({"prompt":"aé","echo":true,"logprobs":1,"prompt_logprobs":1})"), b.context),
           {first, piece("x", 9), finished()}));
  const auto& made = at(body, "choices", 0);
  CHECK(at(made, "text") == value("aéx"));
  CHECK(at(made, "logprobs", "tokens") == json(R"(["<s>","a","é","x"])"));
  CHECK(at(made, "logprobs", "token_logprobs") == json("[null,-1.5,-2.5,-0.25]"));
  CHECK(at(made, "logprobs", "top_logprobs", 0).is_null());
  CHECK(at(made, "logprobs", "top_logprobs", 1) == json(R"({"~":-0.125,"a":-1.5})"));
  CHECK(at(made, "logprobs", "text_offset") == json("[0,0,1,2]"));
  CHECK(at(made, "prompt_logprobs", 0).is_null());
  CHECK(at(made, "prompt_logprobs", 2) ==
        json(R"({"7":{"logprob":-0.125,"rank":1,"decoded_token":"~"},
                 "6":{"logprob":-2.5,"rank":null,"decoded_token":"é"}})"));

  // The answer's tokens begin where the whole prompt ends, even if its tokens are not its text.
  auto unlike = started(1);
  unlike.prompt_scores = {score(8, "<unk>", std::numeric_limits<float>::quiet_NaN())};
  const auto after =
      json(play(parse_completions(json(R"({"prompt":"aé","echo":true,"logprobs":1})"), b.context),
                {unlike, piece("x", 9), piece("y", 10), finished()}));
  CHECK(at(after, "choices", 0, "logprobs", "text_offset") == json("[0,2,3]"));

  auto asked = parse_completions(
      json(R"({"prompt":"a","echo":true,"logprobs":3,"max_tokens":0,"bad_words":["no"],
               "allowed_token_ids":[4,5]})"),
      b.context);
  if (asked.ok()) { // parsing may fail: the engine may want a token
    const auto& request = asked.value().requests[0];
    CHECK(request.prompt_logprobs == 3);
    CHECK(request.sampling.max_tokens == 0);
    CHECK(request.sampling.bad_words == std::vector<std::string>{"no"});
    CHECK(request.sampling.allowed_token_ids == std::vector<std::int32_t>{4, 5});
  }
}
