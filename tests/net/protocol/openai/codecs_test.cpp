// Every field of every request body: how it is used, and the error if it breaks its rule.
#include "net/protocol/openai/chat.hpp"
#include "net/protocol/openai/completions.hpp"
#include "net/protocol/openai/responses.hpp"
#include "net/protocol/openai/tokenize.hpp"
#include "tests/catch.hpp"
#include "tests/net/support/codec_support.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::testing;

namespace {

struct fixture : codec_fixture {
  std::string completion_error(const std::string& members) {
    const auto made = parse_completions(json("{\"prompt\":\"x\"," + members + "}"), context);
    return made.ok() ? "" : made.code().message;
  }
  std::string chat_error(const std::string& members) {
    const auto made = parse_chat(json("{" + members + "}"), context);
    return made.ok() ? "" : made.code().message;
  }
  std::string response_error(const std::string& members) {
    const auto made = parse_response_turn(json("{" + members + "}"), context,
                                          [](const std::string&) { return remembered_ptr(); });
    return made.ok() ? "" : made.code().message;
  }
  actors::request completion(const std::string& body) {
    auto made = parse_completions(json(body), context);
    REQUIRE(made.ok());
    return made.value().requests.at(0);
  }
  actors::request chat(const std::string& body) {
    auto made = parse_chat(json(body), context);
    REQUIRE(made.ok());
    return made.value().requests.at(0);
  }
};

} // namespace

TEST_CASE("Every sampling field reaches the engine") {
  fixture b;
  const auto s = b.completion(R"({"prompt":"x","temperature":0.5,"top_k":7,"top_p":0.9,"min_p":0.1,
    "repetition_penalty":1.1,"presence_penalty":0.2,"frequency_penalty":-0.3,"seed":42,
    "logit_bias":{"5":-100,"6":1.5},"max_tokens":33,"min_tokens":2,"ignore_eos":true,
    "stop":["a","b"],"stop_token_ids":[1,2],"include_stop_str_in_output":true,
    "skip_special_tokens":false,"n":3,"logprobs":4,"unknown_field":{"x":1},"user":"u"})")
                     .sampling;
  CHECK(s.temperature == 0.5f);
  CHECK(s.top_k == 7);
  CHECK(s.top_p == 0.9f);
  CHECK(s.min_p == 0.1f);
  CHECK(s.repetition_penalty == 1.1f);
  CHECK(s.presence_penalty == 0.2f);
  CHECK(s.frequency_penalty == -0.3f);
  CHECK(s.seed == 42u);
  CHECK(s.logit_bias == std::vector<std::pair<std::int32_t, float>>{{5, -100.0f}, {6, 1.5f}});
  CHECK(s.max_tokens == 33);
  CHECK(s.min_tokens == 2);
  CHECK(s.ignore_eos);
  CHECK(s.stop == std::vector<std::string>{"a", "b"});
  CHECK(s.stop_token_ids == std::vector<std::int32_t>{1, 2});
  CHECK(s.include_stop_str_in_output);
  CHECK(!s.skip_special_tokens);
  CHECK(s.n == 3);
  CHECK(s.logprobs == 4);
}

TEST_CASE("Defaults are the API's, and null counts as absent") {
  fixture b;
  auto s = b.completion(R"({"prompt":"x","temperature":null,"stop":null,"n":null,"seed":null})")
               .sampling;
  CHECK(s.max_tokens == 16);
  CHECK(s.temperature == 1.0f);
  CHECK(s.n == 1);
  CHECK(!s.seed.has_value());
  CHECK(s.logprobs == -1);
  s = b.chat(R"({"messages":[{"role":"user","content":"x"}]})").sampling;
  CHECK(s.max_tokens == -1);
  b.limits.default_max_tokens = 9;
  CHECK(b.chat(R"({"messages":[{"role":"user","content":"x"}]})").sampling.max_tokens == 9);
  CHECK(b.chat(R"({"messages":[{"role":"user","content":"x"}],"max_tokens":5})")
            .sampling.max_tokens == 5);
  CHECK(b.chat(R"({"messages":[{"role":"user","content":"x"}],"max_completion_tokens":6})")
            .sampling.max_tokens == 6);
  b.model.default_sampling.temperature = 0.25f;
  CHECK(b.completion(R"({"prompt":"x"})").sampling.temperature == 0.25f);
}

TEST_CASE("A broken sampling field is named with its rule and the value given") {
  fixture b;
  const std::pair<const char*, const char*> cases[] = {
      {R"("temperature":"hot")", "`temperature` must be a number, got \"hot\""},
      {R"("temperature":-1)", "`temperature` must be between 0 and 100, got -1"},
      {R"("temperature":1e300)", "`temperature` must be a number that fits 32 bits"},
      {R"("top_k":1.5)", "`top_k` must be a whole number in range, got 1.5"},
      {R"("top_k":-2)", "`top_k` must be -1 or more, got -2"},
      {R"("top_p":-0.5)", "`top_p` must be between 0 and 1, got -0.5"},
      {R"("min_p":2)", "`min_p` must be between 0 and 1, got 2"},
      {R"("repetition_penalty":0)", "`repetition_penalty` must be above 0"},
      {R"("presence_penalty":3)", "`presence_penalty` must be between -2 and 2, got 3"},
      {R"("frequency_penalty":-3)", "`frequency_penalty` must be between -2 and 2, got -3"},
      {R"("seed":1.5)", "`seed` must be an integer"},
      {R"("seed":18446744073709551616)", "`seed` must be an integer of at most 64 bits"},
      {R"("seed":1e20)", "`seed` must be an integer of at most 64 bits"},
      {R"("seed":"x")", "`seed` must be an integer"},
      {R"("logit_bias":[1])", "`logit_bias` must be an object, got [1]"},
      {R"("logit_bias":{"x":1})",
       "`logit_bias` must be an object whose keys are token ids, got \"x\""},
      {R"("logit_bias":{"5":"a"})", "`logit_bias.5` must be a number, got \"a\""},
      {R"("logit_bias":{"5":101})", "`logit_bias.5` must be within [-100, 100], got 101"},
      {R"("logit_bias":{"5000":1})", "`logit_bias` must be token ids between 0 and 999, got 5000"},
      {R"("max_tokens":-1)", "`max_tokens` must be >= 0, got -1"},
      {R"("max_tokens":"many")", "`max_tokens` must be an integer, got \"many\""},
      {R"("max_tokens":99999999999)", "`max_tokens` must be <= 2147483647, got 99999999999"},
      {R"("max_tokens":true)", "`max_tokens` must be an integer, got true"},
      {R"("min_tokens":-1)", "`min_tokens` must be >= 0, got -1"},
      {R"("max_tokens":4,"min_tokens":5)", "`min_tokens` must be at most `max_tokens` (4), got 5"},
      {R"("ignore_eos":1)", "`ignore_eos` must be true or false, got 1"},
      {R"("stop":5)", "`stop` must be a string or a list of strings, got 5"},
      {R"("stop":["a",5])", "`stop[1]` must be a string, got 5"},
      {R"("stop":"")", "`stop` must have no empty entry"},
      {R"("stop_token_ids":3)", "`stop_token_ids` must be a list of token ids, got 3"},
      {R"("stop_token_ids":[1,-3])",
       "`stop_token_ids[1]` must be a token id, an integer >= 0, got -3"},
      {R"("n":0)", "`n` must be >= 1, got 0"},
      {R"("n":17)", "`n` must be at most 16, got 17"},
      {R"("logprobs":21)", "`logprobs` must be at most 20, got 21"},
      {R"("logprobs":true)", "`logprobs` must be an integer, got true"},
      {R"("stream":"yes")", "`stream` must be true or false, got \"yes\""},
      {R"("stream":true,"stream_options":7)", "`stream_options` must be an object, got 7"},
      {R"("stream_options":{"include_usage":true})",
       "`stream_options` must be absent unless `stream` is true"},
      {R"("stream":true,"stream_options":{"include_usage":1})",
       "`stream_options.include_usage` must be true or false, got 1"},
      {R"("echo":"x")", "`echo` must be true or false, got \"x\""},
      {R"("echo":true,"truncate_prompt_tokens":5)",
       "`truncate_prompt_tokens` must be absent when `echo` is true, got 5"},
      {R"("truncate_prompt_tokens":0)", "`truncate_prompt_tokens` must be >= 1, got 0"},
      {R"("logprobs":-2)", "`logprobs` must be >= -1, got -2"},
      {R"("logprobs":-1)",
       "`logprobs` must be at most 20 (`limits.max_logprobs`) where -1 asks for "
       "all 1000 tokens of the vocabulary, got -1"},
      {R"("prompt_logprobs":-1)", "`prompt_logprobs` must be at most 20 (`limits.max_logprobs`) "
                                  "where -1 asks for all 1000 tokens of the vocabulary, got -1"},
      {R"("bad_words":5)", "`bad_words` must be a list of strings, got 5"},
      {R"("bad_words":"a")", "`bad_words` must be a list of strings, got \"a\""},
      {R"("guided_regex":"")", "`guided_regex` must be a text that is not empty, got \"\""},
      {R"("guided_choice":[])", "`guided_choice` must be a list of 1 to"},
      {R"("truncate_prompt_tokens":-2)", "`truncate_prompt_tokens` must be >= 1, got -2"},
      {R"("allowed_token_ids":[])", "`allowed_token_ids` must be a list of at least one token id"},
      {R"("tools":[])", "`tools` must be absent: tools belong to chat"},
      {R"("best_of":2)", "`best_of` must be equal to `n`, got 2"},
      {R"("prompt_logprobs":"x")", "`prompt_logprobs` must be an integer, got \"x\""},
      {R"("suffix":"x")", "`suffix` must be absent"},
  };
  for (const auto& [members, expected] : cases) {
    INFO(members);
    const auto message = b.completion_error(members);
    INFO(message);
    CHECK(contains(message, expected));
  }
  for (const auto* harmless :
       {R"("best_of":1)", R"("response_format":{"type":"text"})", R"("use_beam_search":false)",
        R"("prompt_logprobs":null)", R"("bad_words":[])", R"("priority":3)", R"("top_k":0)",
        R"("truncate_prompt_tokens":-1)", R"("grammar":"")"})
    CHECK(b.completion_error(harmless) == "");
  b.limits.max_logprobs = 1000;
  CHECK(b.completion(R"({"prompt":"x","logprobs":-1})").sampling.logprobs == 1000);
}

TEST_CASE("A completion prompt is a string, ids, or a list of either") {
  fixture b;
  const auto requests = [&](const std::string& prompt) {
    auto made = parse_completions(json("{\"prompt\":" + prompt + "}"), b.context);
    REQUIRE(made.ok());
    return std::move(made.value().requests);
  };
  CHECK(std::get<actors::text_prompt>(requests("\"hi\"")[0].prompt).text == "hi");
  CHECK(std::get<actors::token_prompt>(requests("[1,2]")[0].prompt) == actors::token_prompt{1, 2});
  CHECK(requests("[\"a\",\"b\"]").size() == 2);
  const auto lists = requests("[[1],[2,3],\"c\"]");
  REQUIRE(lists.size() == 3);
  CHECK(std::get<actors::token_prompt>(lists[1].prompt) == actors::token_prompt{2, 3});
  CHECK(!std::get<actors::text_prompt>(
             b.completion(R"({"prompt":"x","add_special_tokens":false})").prompt)
             .add_special);

  const std::pair<const char*, const char*> cases[] = {
      {"{}", "`prompt` must be given, got nothing"},
      {R"({"prompt":null})", "`prompt` must be given"},
      {R"({"prompt":5})",
       "`prompt` must be a string, a list of token ids, or a list of either, got 5"},
      {R"({"prompt":[]})", "`prompt` must be"},
      {R"({"prompt":[1,"a"]})", "`prompt[1]` must be a token id, an integer >= 0, got \"a\""},
      {R"({"prompt":[1,-2]})", "`prompt[1]` must be a token id, an integer >= 0, got -2"},
      {R"({"prompt":[1,2000]})", "`prompt[1]` must be a token id below 1000, got 2000"},
      {R"({"prompt":[999,1000]})", "`prompt[1]` must be a token id below 1000, got 1000"},
      {R"({"prompt":["a",5]})", "`prompt[1]` must be a string or a list of token ids, got 5"},
      {R"({"prompt":[[1.5]]})", "`prompt[0][0]` must be a token id"},
      {R"([1])", "body must be a JSON object, got [1]"},
  };
  for (const auto& [body, expected] : cases) {
    const auto made = parse_completions(json(body), b.context);
    REQUIRE(!made.ok());
    INFO(made.code().message);
    CHECK(contains(made.code().message, expected));
  }
}

TEST_CASE("A chat goes on from its last message where that is the beginning of an answer") {
  fixture b;
  const auto chat = [&](const std::string& last, const std::string& rest) {
    return parse_chat(
        json(R"({"messages":[{"role":"user","content":"hi"},)" + last + "]," + rest + "}"),
        b.context);
  };
  const std::string begun = R"({"role":"assistant","content":"So "})";
  for (const auto* rest : {R"("continue_final_message":true)",
                           R"("continue_final_message":true,"add_generation_prompt":false)"}) {
    const auto made = chat(begun, rest);
    REQUIRE(made.ok());
    CHECK(std::get<actors::chat_prompt>(made.value().requests.front().prompt).continue_last);
  }
  const auto whole = chat(begun, R"("continue_final_message":false)");
  REQUIRE(whole.ok());
  CHECK(!std::get<actors::chat_prompt>(whole.value().requests.front().prompt).continue_last);

  const std::vector<std::pair<std::string, std::string>> refused{
      {begun, R"("continue_final_message":true,"add_generation_prompt":true)"},
      {begun, R"("continue_final_message":1)"},
      {R"({"role":"user","content":"x"})", R"("continue_final_message":true)"},
      {R"({"role":"assistant","content":""})", R"("continue_final_message":true)"},
      {R"({"role":"assistant","content":" \n\t"})", R"("continue_final_message":true)"},
      {R"({"role":"assistant","content":"x","tool_calls":[{"id":"1","type":"function",
           "function":{"name":"f","arguments":"{}"}}]})",
       R"("continue_final_message":true)"}};
  for (const auto& [last, rest] : refused) {
    const auto made = chat(last, rest);
    INFO(last << rest);
    REQUIRE(!made.ok());
    CHECK(made.code().param == "continue_final_message");
  }
}

TEST_CASE("Chat messages come as strings or text parts, and tools reach the template") {
  fixture b;
  const auto request = b.chat(R"({"messages":[
      {"role":"system","content":"s"},
      {"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
      {"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function",
        "function":{"name":"f","arguments":"{\"x\":1}"}}]},
      {"role":"tool","content":"r","tool_call_id":"1"}],
      "tools":[{"type":"function","function":{"name":"f"}}],"add_generation_prompt":false,
      "chat_template":"rag","chat_template_kwargs":{"k":true},"logprobs":true,"top_logprobs":2,
      "return_token_ids":true})");
  const auto& chat = std::get<actors::chat_prompt>(request.prompt);
  CHECK(at(chat.messages, 1, "content") == value("a\nb"));
  CHECK(at(chat.messages, 2, "tool_calls", 0, "function", "arguments") == value("{\"x\":1}"));
  CHECK(chat.template_name == "rag");
  CHECK(at(chat.tools, 0, "function", "name") == value("f"));
  CHECK(!chat.add_generation_prompt);
  CHECK(chat.template_arguments.at(0).first == "k");
  CHECK(request.sampling.logprobs == 2);
  CHECK(request.echo_prompt_ids);
  const auto none = b.chat(
      R"({"messages":[{"role":"user","content":"x"}],"tool_choice":"none",
          "tools":[{"type":"function","function":{"name":"f"}}]})");
  CHECK(std::get<actors::chat_prompt>(none.prompt).tools.is_null());
}

TEST_CASE("A broken chat field is named with its rule and the value given") {
  fixture b;
  const std::string messages = R"("messages":[{"role":"user","content":"x"}])";
  const std::pair<std::string, const char*> cases[] = {
      {"", "`messages` must be given, got nothing"},
      {R"("messages":"x")", "`messages` must be a list of at least one message, got \"x\""},
      {R"("messages":[])", "`messages` must be a list of at least one message, got []"},
      {R"("messages":["x"])", "`messages[0]` must be an object, got \"x\""},
      {R"("messages":[{"content":"x"}])",
       "`messages[0].role` must be \"system\", \"developer\", \"user\", \"assistant\", \"tool\" or "
       "\"function\", got null"},
      {R"("messages":[{"role":"narrator","content":"x"}])", "got \"narrator\""},
      {R"("messages":[{"role":"user"}])",
       "`messages[0].content` must be a string or a list of text parts"},
      {R"("messages":[{"role":"user","content":5}])",
       "`messages[0].content` must be a string or a list of text parts, got 5"},
      {R"("messages":[{"role":"user","content":[{"type":"image_url","image_url":{}}]}])",
       "`messages[0].content[0].type` must be \"text\", as no model here reads images, sound or "
       "files, got \"image_url\""},
      {R"("messages":[{"role":"user","content":[{"type":"text"}]}])",
       "`messages[0].content[0].text` must be a string"},
      {R"("messages":[{"role":"user","content":["x"]}])",
       "`messages[0].content[0]` must be a text part, an object with `type` and `text`, got \"x\""},
      {messages + R"(,"echo":true)", "`echo` must be false or absent: only completions"},
      {messages + R"(,"tools":5)", "`tools` must be a list of tools, got 5"},
      {messages + R"(,"tool_choice":"required")",
       "`tool_choice` must be \"auto\" or \"none\" without tools, got \"required\""},
      {messages + R"(,"top_logprobs":2)",
       "`top_logprobs` must be absent unless `logprobs` is true, got 2"},
      {messages + R"(,"logprobs":3)", "`logprobs` must be true or false, got 3"},
      {messages + R"(,"chat_template_kwargs":1)",
       "`chat_template_kwargs` must be an object, got 1"},
      {messages + R"(,"chat_template":"{{ x }}")",
       "`chat_template` must be the name of one of the model's templates, as this server takes no "
       "templates from requests, got \"{{ x }}\""},
      {messages + R"(,"chat_template":3)", "`chat_template` must be a string, got 3"},
      {messages + R"(,"max_completion_tokens":0)", "`max_completion_tokens` must be >= 1, got 0"},
  };
  for (const auto& [members, expected] : cases) {
    const auto message = b.chat_error(members);
    INFO(members << " -> " << message);
    CHECK(contains(message, expected));
  }
}

TEST_CASE("Responses input becomes messages, instructions first") {
  fixture b;
  const auto made =
      parse_response_turn(json(R"({"instructions":"be brief","max_output_tokens":9,
      "input":[{"role":"user","content":[{"type":"input_text","text":"hi"}]},
        {"type":"message","role":"developer","content":"d"},
        {"type":"reasoning","id":"r"},
        {"type":"function_call","call_id":"c","name":"f","arguments":"{}"},
        {"type":"function_call_output","call_id":"c","output":"42"}],
      "tools":[{"type":"function","name":"f","parameters":{},"strict":true}],
      "include":["message.output_text.logprobs"],"top_logprobs":3})"),
                          b.context, [](const std::string&) { return remembered_ptr(); });
  REQUIRE(made.ok());
  const auto& turn = made.value();
  const auto& chat = std::get<actors::chat_prompt>(turn.request.prompt);
  CHECK(at(chat.messages, 0, "content") == value("be brief"));
  CHECK(at(chat.messages, 1, "content") == value("hi"));
  CHECK(at(chat.messages, 2, "role") == value("developer"));
  CHECK(at(chat.messages, 3, "tool_calls", 0, "function", "name") == value("f"));
  CHECK(at(chat.messages, 4, "role") == value("tool"));
  CHECK(at(chat.tools, 0, "function", "name") == value("f"));
  CHECK(turn.messages.size() == 4); // without the instructions
  CHECK(turn.request.sampling.max_tokens == 9);
  CHECK(turn.request.sampling.logprobs == 3);
}

TEST_CASE("truncation lets turns be left out for as much output as was asked for") {
  fixture b;
  const auto room = [&](const std::string& members) {
    const auto made = parse_response_turn(json(R"({"input":"x")" + members + "}"), b.context,
                                          [](const std::string&) { return remembered_ptr(); });
    REQUIRE(made.ok());
    const auto& chat = std::get<actors::chat_prompt>(made.value().request.prompt);
    return made.value().echo.truncation + " " + std::to_string(chat.drop_turns_for_output);
  };
  CHECK(room("") == "disabled -1");
  CHECK(room(R"(,"truncation":null)") == "disabled -1");
  CHECK(room(R"(,"truncation":"disabled")") == "disabled -1");
  CHECK(room(R"(,"truncation":"auto")") == "auto 512"); // an eighth of the context
  CHECK(room(R"(,"truncation":"auto","max_output_tokens":7)") == "auto 7");
}

TEST_CASE("A broken Responses field is named with its rule and the value given") {
  fixture b;
  const std::pair<const char*, const char*> cases[] = {
      {"", "`input` must be given, got nothing"},
      {R"("input":5)", "`input` must be a string or a list of items, got 5"},
      {R"("input":[])", "`input` must be not empty, got []"},
      {R"("input":[5])", "`input[0]` must be an object, got 5"},
      {R"("input":[{"content":"x"}])", "`input[0].role` must be a role"},
      {R"("input":[{"role":"user"}])", "`input[0].content` must be"},
      {R"("input":[{"type":"input_image"}])", "`input[0].type` must be \"message\""},
      {R"("input":"x","background":true,"store":false)",
       "`background` must be false where `store` is false, got true"},
      {R"("input":"x","conversation":"c")", "`conversation` must be absent"},
      {R"("input":"x","truncation":"middle")",
       "`truncation` must be \"auto\" or \"disabled\", got \"middle\""},
      {R"("input":"x","truncation":7)", "`truncation` must be \"auto\" or \"disabled\", got 7"},
      {R"("input":"x","text":{"format":{"type":"json_schema"}})",
       "`text.format.schema` must be given, got nothing"},
      {R"("input":"x","n":2)", "`n` must be <= 1, got 2"},
      {R"("input":"x","max_output_tokens":0)", "`max_output_tokens` must be >= 1, got 0"},
      {R"("input":"x","metadata":5)", "`metadata` must be an object, got 5"},
      {R"("input":"x","tools":"t")", "`tools` must be a list of tools, got \"t\""},
      {R"("input":"x","tool_choice":"required")", "`tool_choice` must be"},
      {R"("input":"x","prompt_logprobs":1)", "`prompt_logprobs` must be absent"},
      {R"("input":"x","include":"all")", "`include` must be a list of strings, got \"all\""},
      {R"("input":"x","instructions":5)", "`instructions` must be a string, got 5"},
      {R"("input":"x","previous_response_id":"resp_1")",
       "`previous_response_id` must name a response that this server remembers, got \"resp_1\""},
      {R"("input":"x","temperature":500)", "`temperature` must be between 0 and 100, got 500"},
  };
  for (const auto& [members, expected] : cases) {
    const auto message = b.response_error(members);
    INFO(members << " -> " << message);
    CHECK(contains(message, expected));
  }
}

TEST_CASE("Tokenizing answers in vLLM's or llama.cpp's shape") {
  fixture b;
  const auto of = [&](const char* body) {
    auto made = tokenize_body(json(body), b.context);
    return made.ok() ? made.value() : made.code().message;
  };
  CHECK(of(R"({"prompt":"ab"})") ==
        R"({"count":3,"max_model_len":4096,"tokens":[1,97,98],"token_strs":null})");
  CHECK(of(R"({"prompt":"ab","add_special_tokens":false,"return_token_strs":true})") ==
        R"({"count":2,"max_model_len":4096,"tokens":[97,98],"token_strs":["a","b"]})");
  CHECK(of(R"({"messages":[{"role":"user","content":"x"}]})") ==
        R"({"count":1,"max_model_len":4096,"tokens":[42],"token_strs":null})");
  CHECK(of(R"({"content":"ab"})") == R"({"tokens":[97,98]})");
  CHECK(of(R"({"content":"a","add_special":true,"with_pieces":true})") ==
        R"({"tokens":[{"id":1,"piece":"\u0001"},{"id":97,"piece":"a"}]})");
  CHECK(of(R"({})") == "`prompt` must be given, got nothing");
  CHECK(of(R"({"prompt":7})") == "`prompt` must be a string, got 7");
  const auto back = detokenize_body(json(R"({"tokens":[104,105]})"), b.context);
  REQUIRE(back.ok());
  CHECK(back.value() == R"({"prompt":"hi","content":"hi"})");
  CHECK(detokenize_body(json(R"({"tokens":[5000]})"), b.context).code().message ==
        "`tokens[0]` must be a token id below 1000, got 5000");
  CHECK(!detokenize_body(json(R"({})"), b.context).ok());
}

TEST_CASE("A tokenizer is described in vLLM's shape, without paths") {
  fixture b;
  const auto received = tokenizer_info_body(b.model, b.engine);
  REQUIRE(received.ok());
  CHECK(received.value() ==
        R"({"tokenizer_class":"bytes","model_max_length":4096,"vocab_size":1000,)"
        R"("add_bos_token":true,"bos_token":"<","eos_token":null,"pad_token":null,)"
        R"("added_tokens_decoder":{"60":{"content":"<","special":true}},)"
        R"("chat_template":"{{ messages }}"})");
}

TEST_CASE(
    "Whole numbers may be written with a fraction of zero, wherever an integer is asked for") {
  fixture b;
  const auto s = b.completion(R"({"prompt":"x","seed":1.0,"max_tokens":3.0,"top_k":4.0,"n":2.0,
                                  "min_tokens":1.0,"logprobs":1.0,"stop_token_ids":[5.0]})")
                     .sampling;
  CHECK(s.seed == 1u);
  CHECK(s.max_tokens == 3);
  CHECK(s.top_k == 4);
  CHECK(s.n == 2);
  CHECK(s.min_tokens == 1);
  CHECK(s.logprobs == 1);
  CHECK(s.stop_token_ids == std::vector<std::int32_t>{5});
}

TEST_CASE("A seed takes 64 bits") {
  fixture b;
  for (const auto& [text, seed] : {std::pair("18446744073709551615", ~std::uint64_t{0}),
                                   std::pair("9223372036854775808", std::uint64_t{1} << 63)})
    CHECK(b.completion(R"({"prompt":"x","seed":)" + std::string(text) + "}").sampling.seed == seed);
}

TEST_CASE("The names that other servers have for a limit and a penalty are honoured, ours win") {
  fixture b;
  CHECK(b.completion(R"({"prompt":"x","repeat_penalty":1.5})").sampling.repetition_penalty == 1.5f);
  CHECK(b.completion(R"({"prompt":"x","repeat_penalty":1.5,"repetition_penalty":1.25})")
            .sampling.repetition_penalty == 1.25f);
  for (const std::string name : {"n_predict", "num_predict", "max_new_tokens"}) {
    CAPTURE(name);
    const auto limit = [&](const std::string& rest) {
      return b.completion(R"({"prompt":"x",")" + name + "\":" + rest + "}").sampling.max_tokens;
    };
    CHECK(limit("7") == 7);
    CHECK(limit("-1") == -1);
    CHECK(limit("-2") == -1);
    CHECK(limit(R"(7,"max_tokens":9)") == 9);
  }
  CHECK(b.completion(R"({"prompt":"x","top_p":0})").sampling.top_p == 0);
}
