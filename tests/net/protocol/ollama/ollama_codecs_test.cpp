// Every field of /api/chat and /api/generate: how it is used, and the error if it breaks its rule.
#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "net/protocol/api_style.hpp"
#include "net/protocol/model_lookup.hpp"
#include "net/protocol/ollama/chat.hpp"
#include "net/protocol/ollama/generate.hpp"
#include "net/protocol/ollama/times.hpp"
#include "tests/catch.hpp"
#include "tests/net/support/codec_support.hpp"
#include "tests/support/operations.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::test;
using namespace twill::testing;

namespace {

constexpr const char* one_message = R"("messages":[{"role":"user","content":"x"}])";

struct fixture : codec_fixture {
  call chat_call(const std::string& body) {
    auto made = parse_ollama_chat(json(body), context);
    INFO(body);
    if (!made.ok()) FAIL(made.code().message);
    return std::move(made).value();
  }
  call generate_call(const std::string& body) {
    auto made = parse_ollama_generate(json(body), context);
    INFO(body);
    if (!made.ok()) FAIL(made.code().message);
    return std::move(made).value();
  }
  actors::request chat(const std::string& members = R"("stream":true)") {
    return chat_call("{" + std::string(one_message) + "," + members + "}").requests.at(0);
  }
  actors::request generate(const std::string& members) {
    return generate_call(R"({"prompt":"x",)" + members + "}").requests.at(0);
  }
  actors::request with_options(const std::string& members) {
    return chat(R"("options":{)" + members + "}");
  }
  actors::chat_prompt prompt(const std::string& body) {
    return std::get<actors::chat_prompt>(chat_call(body).requests.at(0).prompt);
  }
  std::string chat_error(const std::string& body) {
    const auto made = parse_ollama_chat(json(body), context);
    return made.ok() ? "" : made.code().message;
  }
  std::string generate_error(const std::string& members) {
    const auto made = parse_ollama_generate(json(R"({"prompt":"x",)" + members + "}"), context);
    return made.ok() ? "" : made.code().message;
  }
};

} // namespace

TEST_CASE("Ollama: options say how tokens are chosen") {
  fixture b;
  b.model.default_sampling.temperature = 0.5f;
  b.model.default_sampling.top_k = 7;
  const auto s = b.with_options(R"("temperature":0.25,"top_k":3,"top_p":0.75,"min_p":0.125,
      "seed":18446744073709551615,"stop":["a","b"],"num_predict":9,"repeat_penalty":1.5,
      "presence_penalty":0.5,"frequency_penalty":-0.5,"repeat_last_n":64)")
                     .sampling;
  CHECK(s.temperature == 0.25f);
  CHECK(s.top_k == 3);
  CHECK(s.top_p == 0.75f);
  CHECK(s.min_p == 0.125f);
  CHECK(s.seed == 18446744073709551615u);
  CHECK(s.stop == std::vector<std::string>{"a", "b"});
  CHECK(s.max_tokens == 9);
  CHECK(s.repetition_penalty == 1.5f);
  CHECK(s.presence_penalty == 0.5f);
  CHECK(s.frequency_penalty == -0.5f);
  CHECK(s.n == 1);

  const auto plain = b.chat().sampling;
  CHECK(plain.temperature == 0.5f);
  CHECK(plain.top_k == 7);
  CHECK(plain.max_tokens == -1);
  CHECK(!plain.seed.has_value());
  CHECK(b.with_options(R"("temperature":null,"seed":null,"stop":null)").sampling.temperature ==
        0.5f);
  CHECK(!b.with_options(R"("seed":-1)").sampling.seed.has_value());
  for (const auto* no_limit : {"-1", "-2", "0"})
    CHECK(b.with_options(R"("num_predict":)" + std::string(no_limit)).sampling.max_tokens == -1);
  const auto without = b.with_options(R"("repeat_last_n":0,"repeat_penalty":1.5,
      "presence_penalty":1,"frequency_penalty":1)")
                           .sampling;
  CHECK(without.repetition_penalty == 1);
  CHECK(without.presence_penalty == 0);
  CHECK(without.frequency_penalty == 0);

  b.limits.default_max_tokens = 33;
  CHECK(b.chat().sampling.max_tokens == 33);
  CHECK(b.generate(R"("raw":true)").sampling.max_tokens == 33);
  CHECK(b.with_options(R"("num_predict":-1)").sampling.max_tokens == -1);
}

TEST_CASE("Ollama: a limit of the output is no promise that there is room for it") {
  fixture b;
  CHECK(b.with_options(R"("num_predict":100000)").shorten_output);
  CHECK(b.generate(R"("raw":true)").shorten_output);
}

TEST_CASE("Ollama: what says how a model is loaded has no effect, and must be what it says it is") {
  fixture b;
  const auto without = b.chat().sampling;
  const auto with = b.with_options(R"("num_ctx":2048,"num_batch":512,"num_gpu":-1,"main_gpu":0,
      "num_thread":8,"num_keep":24,"numa":false,"low_vram":false,"f16_kv":true,"logits_all":false,
      "vocab_only":false,"use_mmap":true,"use_mlock":false,"embedding_only":false,"mirostat":0,
      "mirostat_tau":5.0,"mirostat_eta":0.1,"tfs_z":1,"typical_p":1.0,"penalize_newline":false,
      "repeat_last_n":-1,"of_some_later_version":[1])")
                        .sampling;
  CHECK(with.max_tokens == without.max_tokens);
  CHECK(with.temperature == without.temperature);
  CHECK(with.repetition_penalty == without.repetition_penalty);
}

TEST_CASE("Ollama: a broken option is named with its rule and the value given") {
  fixture b;
  const std::pair<const char*, const char*> cases[] = {
      {R"("temperature":"hot")", "`options.temperature` must be a number, got \"hot\""},
      {R"("temperature":-1)", "`options.temperature` must be between 0 and 100, got -1"},
      {R"("top_k":1.5)", "`options.top_k` must be a whole number in range, got 1.5"},
      {R"("top_k":-7)", "`options.top_k` must be -1 or more, got -7"},
      {R"("top_p":true)", "`options.top_p` must be a number, got true"},
      {R"("min_p":2)", "`options.min_p` must be between 0 and 1, got 2"},
      {R"("seed":"x")", "`options.seed` must be an integer of at most 64 bits, got \"x\""},
      {R"("stop":3)", "`options.stop` must be a string or a list of strings, got 3"},
      {R"("stop":["a",null])", "`options.stop[1]` must be a string, got null"},
      {R"("stop":[""])", "`options.stop` must"},
      {R"("num_predict":-3)", "`options.num_predict` must be >= -2, got -3"},
      {R"("num_predict":"all")", "`options.num_predict` must be an integer, got \"all\""},
      {R"("repeat_penalty":0)", "`options.repeat_penalty` must be above 0"},
      {R"("repeat_last_n":-2)", "`options.repeat_last_n` must be >= -1, got -2"},
      {R"("presence_penalty":3)", "`options.presence_penalty` must be between -2 and 2, got 3"},
      {R"("frequency_penalty":[])", "`options.frequency_penalty` must be a number, got []"},
      {R"("penalize_newline":false,"repeat_penalty":1.1)",
       "`options.penalize_newline` must be true or absent beside penalties, got false"},
      {R"("mirostat":1)", "`options.mirostat` must be absent"},
      {R"("tfs_z":0.5)", "`options.tfs_z` must be absent"},
      {R"("typical_p":0.7)", "`options.typical_p` must be absent"},
      {R"("num_ctx":"8k")", "`options.num_ctx` must be an integer, got \"8k\""},
      {R"("num_gpu":1e30)", "`options.num_gpu` must be a whole number in range"},
      {R"("use_mmap":"yes")", "`options.use_mmap` must be true or false, got \"yes\""},
  };
  for (const auto& [option, message] : cases) {
    INFO(option);
    const auto said =
        b.chat_error("{" + std::string(one_message) + R"(,"options":{)" + option + "}}");
    CHECK(said.starts_with(message));
    CHECK(b.generate_error(R"("options":{)" + std::string(option) + "}") == said);
  }
  CHECK(b.generate_error(R"("options":[1])") == "`options` must be an object, got [1]");
  std::string many;
  for (int i = 0; i < 300; ++i)
    many += (i > 0 ? ",\"o" : "\"o") + std::to_string(i) + "\":1";
  CHECK(b.generate_error(R"("options":{)" + many + "}")
            .starts_with("`options` must be an object of at most 256 members"));
}

TEST_CASE("Ollama: a broken field is named with its rule and the value given") {
  fixture b;
  const std::pair<const char*, const char*> both[] = {
      {R"("stream":"yes")", "`stream` must be true or false, got \"yes\""},
      {R"("format":"xml")", "`format` must be \"json\" or a JSON Schema, an object, got \"xml\""},
      {R"("format":[])", "`format` must be \"json\" or a JSON Schema, an object, got []"},
      {R"("think":"hard")", "`think` must be true, false, \"low\", \"medium\" or \"high\""},
      {R"("think":1)", "`think` must be true, false, \"low\", \"medium\" or \"high\", got 1"},
      {R"("keep_alive":"soon")", "`keep_alive` must be a number of seconds or a duration"},
      {R"("keep_alive":[])", "`keep_alive` must be a number of seconds or a duration"},
      {R"("truncate":1)", "`truncate` must be true or false, got 1"},
      {R"("shift":1)", "`shift` must be true or false, got 1"},
      {R"("logprobs":1)", "`logprobs` must be true or false, got 1"},
      {R"("logprobs":true,"top_logprobs":21)", "`top_logprobs` must be at most 20, got 21"},
      {R"("top_logprobs":2)", "`top_logprobs` must be absent unless `logprobs` is true, got 2"},
      {R"("template":"{{ .Prompt }}")", "`template` must be absent"},
      {R"("model":5)", "`model` must be a string, got 5"},
  };
  for (const auto& [field, message] : both) {
    INFO(field);
    CHECK(b.chat_error("{" + std::string(one_message) + "," + field + "}").starts_with(message));
    CHECK(b.generate_error(field).starts_with(message));
  }
  const std::pair<const char*, const char*> generate[] = {
      {R"("suffix":"}")", "`suffix` must be absent"},
      {R"("images":["aGk="])", "`images` must be absent or an empty list"},
      {R"("prompt":["x"])", "`prompt` must be a string, got [\"x\"]"},
      {R"("raw":"yes")", "`raw` must be true or false, got \"yes\""},
      {R"("raw":true,"context":[1])", "`context` must be absent where `raw` is true"},
      {R"("raw":true,"system":"s")", "`system` must be absent where `raw` is true"},
      {R"("context":[1,-2])", "`context[1]` must be a token id, an integer >= 0, got -2"},
      {R"("context":"x")", "`context` must be a list of token ids, got \"x\""},
  };
  for (const auto& [field, message] : generate) {
    INFO(field);
    CHECK(b.generate_error(field).starts_with(message));
  }
  const std::pair<const char*, const char*> chat[] = {
      {R"({"messages":"x"})", "`messages` must be a list of messages, got \"x\""},
      {R"({"messages":["x"]})", "`messages[0]` must be an object, got \"x\""},
      {R"({"messages":[{"role":"robot","content":"x"}]})", "`messages[0].role` must be"},
      {R"({"messages":[{"role":"user","content":5}]})", "`messages[0].content` must be"},
      {R"({"messages":[{"role":"user","content":"x","images":["aGk="]}]})",
       "`messages[0].images` must be absent or an empty list"},
      {R"({"messages":[{"role":"user","content":"x","images":"aGk="}]})",
       "`messages[0].images` must be absent or an empty list"},
      {R"({"messages":[{"role":"assistant","content":"x","thinking":5}]})",
       "`messages[0].thinking` must be a string, got 5"},
      {R"({"messages":[{"role":"tool","content":"x","tool_name":5}]})",
       "`messages[0].tool_name` must be a string, got 5"},
      {R"({"messages":[{"role":"assistant","tool_calls":{"a":1}}]})",
       "`messages[0].tool_calls` must be a list of tool calls"},
      {R"({"messages":[{"role":"assistant","tool_calls":[5]}]})",
       "`messages[0].tool_calls[0].function` must be an object, got null"},
      {R"({"messages":[{"role":"assistant","tool_calls":[{"function":{}}]}]})",
       "`messages[0].tool_calls[0].function.name` must be the name of a function"},
      {R"({"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":5}}]}]})",
       "`messages[0].tool_calls[0].function.arguments` must be"},
      {R"({"messages":[{"role":"user","content":"x"}],"tools":{}})",
       "`tools` must be a list of tools"},
      {R"({"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function"}]})",
       "`tools[0].name` must be 1 to 128"},
  };
  for (const auto& [body, message] : chat) {
    INFO(body);
    CHECK(b.chat_error(body).starts_with(message));
  }
  b.model.has_chat_template = false;
  CHECK(b.generate_error(R"("system":"s")").starts_with("`system` must be absent: the model has"));
}

TEST_CASE("Ollama: a chat's messages and tools are those of every other chat") {
  fixture b;
  const auto prompt = b.prompt(R"({"messages":[
      {"role":"system","content":"be brief"},
      {"role":"user","content":"weather?","images":[]},
      {"role":"assistant","content":"","thinking":"two cities","tool_calls":[
        {"function":{"name":"weather","arguments":{"city":"Oslo"}}},
        {"id":"mine","function":{"index":1,"name":"weather","arguments":{"city":"Rome"}}},
        {"function":{"name":"clock","arguments":{}}}]},
      {"role":"tool","tool_name":"clock","content":"noon"},
      {"role":"tool","tool_name":"weather","content":"rain"},
      {"role":"tool","tool_call_id":"mine","content":"sun"},
      {"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{}}}]},
      {"role":"tool","content":"first"},
      {"role":"tool","content":"there is no such call"}],
      "tools":[{"function":{"name":"weather","parameters":{"type":"object"}}},
               {"type":"function","function":{"name":"clock"}}]})");
  const auto& messages = prompt.messages;
  CHECK(at(messages, 1) == json(R"({"role":"user","content":"weather?"})"));
  CHECK(at(messages, 2, "reasoning_content") == value("two cities"));
  CHECK(at(messages, 2, "content") == value(""));
  CHECK(at(messages, 2, "tool_calls", 0, "id") == value("call_2_0"));
  CHECK(at(messages, 2, "tool_calls", 1, "id") == value("mine"));
  CHECK(at(messages, 2, "tool_calls", 1, "function") ==
        json(R"({"name":"weather","arguments":{"city":"Rome"}})"));
  CHECK(at(messages, 3) ==
        json(R"({"role":"tool","content":"noon","name":"clock","tool_call_id":"call_2_2"})"));
  CHECK(at(messages, 4, "tool_call_id") == value("call_2_0"));
  CHECK(at(messages, 5, "tool_call_id") == value("mine"));
  CHECK(at(messages, 5, "name") == value("weather"));
  CHECK(at(messages, 7, "tool_call_id") == value("call_6_0"));
  CHECK(at(messages, 7, "name") == value("f"));
  CHECK(at(messages, 8).find("tool_call_id") == nullptr);
  CHECK(at(prompt.tools, 0) == json(R"({"type":"function","function":{"name":"weather",
      "parameters":{"type":"object"}}})"));
  CHECK(at(prompt.tools, 1, "function", "name") == value("clock"));
  CHECK(b.prompt("{" + std::string(one_message) + R"(,"tools":[]})").tools.is_null());
}

TEST_CASE("Ollama: thinking is an argument of the template") {
  fixture b;
  const auto arguments = [&](const std::string& think) {
    return value(
        b.prompt("{" + std::string(one_message) + R"(,"think":)" + think + "}").template_arguments);
  };
  CHECK(arguments("null") == json("{}"));
  CHECK(arguments("true") == json(R"({"enable_thinking":true})"));
  CHECK(arguments("false") == json(R"({"enable_thinking":false})"));
  CHECK(arguments("\"low\"") == json(R"({"enable_thinking":true,"reasoning_effort":"low"})"));
  const auto generated = b.generate(R"("think":false)");
  CHECK(value(std::get<actors::chat_prompt>(generated.prompt).template_arguments) ==
        json(R"({"enable_thinking":false})"));
}

TEST_CASE("Ollama: the form of the output is JSON, or keeps to a schema") {
  fixture b;
  using kind = config::grammar_kind;
  CHECK(!b.chat().grammar.has_value());
  CHECK(!b.chat(R"("format":"")").grammar.has_value());
  CHECK(b.chat(R"("format":"json")").grammar->kind == kind::json_object);
  const auto schema = b.generate(R"("format":{"type":"object","properties":{"a":{}}})");
  REQUIRE(schema.grammar.has_value());
  CHECK(schema.grammar->kind == kind::json_schema);
  CHECK(json(schema.grammar->text) == json(R"({"type":"object","properties":{"a":{}}})"));
  CHECK(schema.grammar->closed_objects);
  CHECK(schema.grammar_field == "format");
}

TEST_CASE("Ollama: a prompt is what a user says, unless it is raw") {
  fixture b;
  const auto asked = b.generate(R"("system":"be brief")");
  const auto& chat = std::get<actors::chat_prompt>(asked.prompt);
  CHECK(chat.messages ==
        json(R"([{"role":"system","content":"be brief"},{"role":"user","content":"x"}])"));
  CHECK(asked.parse_output);
  CHECK(asked.echo_prompt_ids);
  const auto more = b.generate(R"("context":[5,6,7])");
  CHECK(std::get<actors::chat_prompt>(more.prompt).before == std::vector<std::int32_t>{5, 6, 7});

  const auto raw = b.generate(R"("raw":true,"system":"","suffix":"","template":"","images":[])");
  CHECK(std::get<actors::text_prompt>(raw.prompt).text == "x");
  CHECK(std::get<actors::text_prompt>(raw.prompt).add_special);
  CHECK(!raw.parse_output);
  CHECK(!raw.echo_prompt_ids);

  b.model.has_chat_template = false;
  const auto plain = b.generate(R"("context":[5])");
  CHECK(std::get<actors::text_prompt>(plain.prompt).text == "x");
  CHECK(std::get<actors::text_prompt>(plain.prompt).before == std::vector<std::int32_t>{5});
}

TEST_CASE("Ollama: a prompt that is too long is cut, unless the request says otherwise") {
  fixture b; // with a context of 4,096 tokens
  const auto turns = [&](const std::string& members) {
    return std::get<actors::chat_prompt>(b.chat(members).prompt).drop_turns_for_output;
  };
  CHECK(turns(R"("stream":true)") == 512);
  CHECK(turns(R"("truncate":true,"options":{"num_predict":100})") == 100);
  CHECK(turns(R"("options":{"num_predict":4000})") == 512);
  CHECK(turns(R"("truncate":false)") == -1);
  CHECK(b.generate(R"("raw":true)").truncate_prompt_tokens == 4096 - 512);
  CHECK(b.generate(R"("options":{"num_predict":100})").truncate_prompt_tokens == 4096 - 100);
  CHECK(b.generate(R"("truncate":false)").truncate_prompt_tokens == 0);
}

TEST_CASE("Ollama: a request without a prompt loads its model, or says that it is unloaded") {
  fixture b;
  for (const auto* body : {"{}", R"({"messages":[]})", R"({"messages":null,"keep_alive":"5m"})"}) {
    const auto made = b.chat_call(body);
    REQUIRE(made.requests.size() == 1);
    CHECK(made.requests[0].sampling.max_tokens == 0);
    CHECK(!made.stream);
    CHECK(made.source == nullptr);
  }
  CHECK(b.generate_call(R"({"prompt":"","stream":true})").requests.size() == 1);
  for (const auto* zero : {"0", "0.0", "\"0\"", "\"0s\"", "\"-0m\""}) {
    const auto body = R"({"keep_alive":)" + std::string(zero) + "}";
    for (const bool chat : {true, false}) {
      auto made = chat ? b.chat_call(body) : b.generate_call(body);
      CHECK(made.requests.empty());
      REQUIRE(made.source != nullptr);
      std::string out;
      made.source->start(
          [&](actors::event ev) {
            CHECK(ev.last);
            made.encoder->on_event(0, std::move(ev), out);
          },
          "client");
      CHECK(out.empty());
      made.encoder->on_end(out);
      CHECK(at(json(out), "done_reason") == value("unload"));
      CHECK(at(json(out), "done") == value(true));
    }
  }
}

TEST_CASE("Ollama: durations are read as Go reads them") {
  const std::pair<const char*, double> cases[] = {
      {"5m", 300},   {"1h30m", 5400}, {"300ms", 0.3},     {"-1s", -1},         {"+2s", 2},
      {"0", 0},      {"-0", 0},       {"1.5h", 5400},     {".5s", 0.5},        {"1.s", 1},
      {"7ns", 7e-9}, {"3us", 3e-6},   {"4\u00b5s", 4e-6}, {"2h3m4.5s", 7384.5}};
  for (const auto& [text, seconds] : cases) {
    INFO(text);
    REQUIRE(go_seconds(text).has_value());
    CHECK(*go_seconds(text) == Approx(seconds));
  }
  for (const auto* text : {"", "-", "+", "5", "m", ".", ".s", "5x", "5m3", "1..5s", "5 m", "--5m",
                           "1h-5m", "infinity"}) {
    INFO(text);
    CHECK(!go_seconds(text).has_value());
  }
  CHECK(!go_seconds(std::string(100'000, '9') + "s").has_value());
}

TEST_CASE("Ollama: times have fractions of a second and end with Z") {
  using namespace std::chrono;
  const auto at_ns = [](std::int64_t ns) {
    return rfc3339(
        system_clock::time_point(duration_cast<system_clock::duration>(nanoseconds(ns))));
  };
  CHECK(at_ns(0) == "1970-01-01T00:00:00.000000000Z");
  CHECK(at_ns(1'700'000'000'000'000'007) == "2023-11-14T22:13:20.000000007Z");
  CHECK(at_ns(-1) == "1969-12-31T23:59:59.999999999Z");
}

TEST_CASE("A name with :latest also means the model without it") {
  fixture b;
  const auto found = [&](const char* name) {
    const auto model = find_model(b.engine, value(value_object{{"model", name}}), nullptr);
    return model.ok() ? model.value().id : model.code().message;
  };
  CHECK(found("test-model") == "test-model");
  CHECK(found("test-model:latest") == "test-model");
  CHECK(found("test-model:other").starts_with("`model` must be a served model"));
  CHECK(found("test-model:latest:latest").starts_with("`model` must be a served model"));
  CHECK(found(":latest").starts_with("`model` must be a served model"));
}

TEST_CASE("Errors of paths under /api have Ollama's form") {
  const api_error error{errc::invalid_field, "`a` must be \"b\"", "a"};
  const auto styled = style_error(error, style_of("/api/chat", false), "req_1");
  CHECK(styled.http_status == 400);
  CHECK(styled.body == R"({"error":"`a` must be \"b\""})");
  const auto missing =
      style_error({actors::errc::unknown_model, "no", ""}, api_style::ollama, "req_1");
  CHECK(missing.http_status == 404);
  CHECK(missing.body == R"({"error":"no"})");
}

namespace {

// Requests as clients send them: chats with tools, thinking, schemas and options; prompts.
constexpr const char* bodies[] = {
    R"({"model":"test-model:latest","messages":[{"role":"system","content":"s"},
        {"role":"user","content":"hello","images":[]}],"stream":true,"keep_alive":"5m",
        "options":{"temperature":0.7,"top_k":40,"top_p":0.9,"num_ctx":8192,"num_predict":128,
        "stop":["###"],"seed":3,"repeat_penalty":1.1,"repeat_last_n":64,"mirostat":0,"tfs_z":1}})",
    R"({"model":"test-model","messages":[{"role":"user","content":"w"},{"role":"assistant",
        "content":"","thinking":"t","tool_calls":[{"id":"c","function":{"name":"f",
        "arguments":{"a":[1,{"b":null}]}}}]},{"role":"tool","tool_name":"f","content":"r"}],
        "tools":[{"type":"function","function":{"name":"f","description":"d",
        "parameters":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}}],
        "think":"low","logprobs":true,"top_logprobs":2,"stream":false,"truncate":true,"shift":true})",
    R"({"model":"test-model","prompt":"p","system":"s","context":[1,2,3],"format":{"type":"object",
        "properties":{"x":{"type":"integer"}}},"keep_alive":-1,"think":false,"options":{}})",
    R"({"model":"test-model","prompt":"p","raw":true,"suffix":"","template":"","images":[],
        "format":"json","options":{"num_predict":-1,"use_mmap":true}})"};

/// What is put in the place of a part of a body.
value odd_value(std::uint32_t which) {
  switch (which % 20) {
  case 0:
    return {};
  case 1:
    return true;
  case 2:
    return -1;
  case 3:
    return 0;
  case 4:
    return 1e300;
  case 5:
    return 0.5;
  case 6:
    return value::whole_number("99999999999999999999999999");
  case 7:
    return "";
  case 8:
    return "json";
  case 9:
    return std::string(70'000, 'x');
  case 10:
    return "\xff";
  case 11:
    return value_list{};
  case 12:
    return value_object{};
  case 13:
    return value_list{value_list{value_list{}}};
  case 14:
    return value_list(300, value(1));
  case 15:
    return value_object{{"role", "tool"}, {"content", ""}};
  case 16:
    return value_object{{"function", value_object{{"name", "f"}}}};
  case 17:
    return value(std::int64_t{1} << 40);
  case 18:
    return "5m";
  default:
    return value_list(200, value("a"));
  }
}

/// A tree with one of its parts, counted from `left`, replaced or taken out.
value changed(const value& tree, std::int64_t& left, const value* instead) {
  if (left-- == 0) return instead == nullptr ? value() : *instead;
  if (const auto* list = tree.as_list()) {
    value_list made;
    for (const auto& v : *list)
      made.push_back(changed(v, left, instead));
    return made;
  }
  if (const auto* object = tree.as_object()) {
    value_object made;
    for (const auto& [key, v] : *object)
      made.emplace_back(key, changed(v, left, instead));
    return made;
  }
  return tree;
}

std::int64_t parts_of(const value& tree) {
  std::int64_t n = 1;
  if (const auto* list = tree.as_list())
    for (const auto& v : *list)
      n += parts_of(v);
  if (const auto* object = tree.as_object())
    for (const auto& [key, v] : *object)
      n += parts_of(v);
  return n;
}

/// Every line of a reply is an object, and the last one says that it is done.
void check_lines(const std::string& out) {
  std::size_t lines = 0;
  for (std::size_t begin = 0; begin < out.size();) {
    const auto end = std::min(out.find('\n', begin), out.size());
    const auto line = parse_json(std::string_view(out).substr(begin, end - begin));
    demand(line.ok() && line.value().as_object() != nullptr, "a line is an object");
    demand(at(line.value(), "done") == value(end + 1 >= out.size()), "only the last line is done");
    ++lines;
    begin = end + 1;
  }
  demand(lines > 0, "a reply has lines");
}

void play_mutations(const operations& sequence) {
  fixture b;
  if (sequence.empty()) return;
  const auto& first = sequence.front();
  value body = json(bodies[first.kind % std::size(bodies)]);
  for (const auto& op : sequence) {
    const auto parts = parts_of(body);
    if (parts < 2) break;
    auto left = static_cast<std::int64_t>(op.a) % (parts - 1) + 1; // the body stays an object
    const auto instead = odd_value(op.b);
    body = changed(body, left, op.c % 8 == 0 ? nullptr : &instead);
  }
  for (const auto parse : {parse_ollama_chat, parse_ollama_generate}) {
    auto made = parse(body, b.context);
    if (!made.ok()) {
      const auto& error = made.code();
      demand(!error.param.empty(), "a refusal names a field: " + error.message);
      demand(contains(error.message, "`" + error.param + "`"), "in its message: " + error.message);
      demand(style_error(error, api_style::ollama, "req_1").http_status == 400,
             "it is the client's fault");
      continue;
    }
    auto& call = made.value();
    demand(call.size() == 1, "one request");
    std::string out;
    call.encoder->on_event(0, started(), out);
    call.encoder->on_event(0, piece("a"), out);
    call.encoder->on_event(0, piece("\nb"), out);
    call.encoder->on_event(0, finished(), out);
    call.encoder->on_end(out);
    check_lines(out);
  }
}

} // namespace

TEST_CASE("Ollama: a body with parts exchanged is taken, or refused by the name of a field") {
  for (const auto* body : bodies) {
    const auto parsed = json(body);
    fixture b;
    INFO(body);
    CHECK((parsed.find("prompt") != nullptr ? parse_ollama_generate : parse_ollama_chat)(parsed,
                                                                                         b.context)
              .ok());
  }
  CHECK(first_failure({.cases = 1500, .long_cases = 60'000, .most_operations = 6},
                      play_mutations) == "");
}
