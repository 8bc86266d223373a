// TGI's routes: how each parameter is used, what replies and errors look like, and that every
// request body is either read or refused with an error that names a field.
#include "net/protocol/tgi/generate.hpp"

#include "net/protocol/openai/tokenize.hpp"
#include "net/protocol/tgi/tgi_error.hpp"
#include "tests/catch.hpp"
#include "tests/net/support/body_mutation.hpp"
#include "tests/net/support/played_call.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::test;
using namespace twill::testing;

namespace {

struct tgi_fixture : codec_fixture {
  call make(const std::string& parameters, codec parse = parse_generate) {
    auto made =
        parse(json(R"({"inputs":"Hi")" +
                   (parameters.empty() ? "" : ",\"parameters\":{" + parameters + "}") + "}"),
              context);
    if (!made.ok()) throw std::runtime_error(made.code().message);
    return std::move(made).value();
  }
  config::sampling_params sampling(const std::string& parameters) {
    return make(parameters).requests.at(0).sampling;
  }
  std::string error(const std::string& parameters, codec parse = parse_generate) {
    const auto made = parse(json(R"({"inputs":"Hi","parameters":{)" + parameters + "}}"), context);
    return made.ok() ? "" : made.code().message;
  }
};

std::vector<value> events_in(const std::string& stream) {
  return stream_events(stream, "data:");
}

actors::event end_token(std::int32_t choice = 0, bool last = true) {
  auto ev = finished(actors::finish_reason::stop, last, choice);
  ev.tokens.push_back({{2, "</s>", -0.5f, true}, {}});
  ev.stop_token = 2;
  return ev;
}

} // namespace

TEST_CASE("Every parameter of TGI that is honoured reaches the engine") {
  tgi_fixture b;
  const auto asked = b.make(R"("do_sample":true,"temperature":0.5,"repetition_penalty":1.25,
    "frequency_penalty":0.5,"top_k":7,"top_p":0.75,"typical_p":1.0,"max_new_tokens":33,
    "stop":["a","b"],"truncate":12,"seed":18446744073709551615,"top_n_tokens":3,"details":true,
    "watermark":false,"adapter_id":null,"grammar":{"type":"regex","value":"a+"})")
                         .requests.at(0);
  const auto& s = asked.sampling;
  CHECK(s.temperature == 0.5f);
  CHECK(s.repetition_penalty == 1.25f);
  CHECK(s.frequency_penalty == 0.5f);
  CHECK(s.top_k == 7);
  CHECK(s.top_p == 0.75f);
  CHECK(s.max_tokens == 33);
  CHECK(s.stop == std::vector<std::string>{"a", "b"});
  CHECK(s.include_stop_str_in_output);
  CHECK(s.seed == 18446744073709551615u);
  CHECK(s.logprobs == 3);
  CHECK(asked.truncate_prompt_tokens == 12);
  CHECK(asked.grammar->kind == config::grammar_kind::regex);
  CHECK(std::get<actors::text_prompt>(asked.prompt).text == "Hi");
  CHECK(std::get<actors::text_prompt>(asked.prompt).add_special);
}

TEST_CASE("A request is greedy unless it asks for sampling, or has no parameters at all") {
  tgi_fixture b;
  b.model.default_sampling.temperature = 0.3f; // TGI's parameters have TGI's defaults
  b.model.default_sampling.repetition_penalty = 1.5f;
  CHECK(b.make("").requests.at(0).sampling.temperature == 1.0f);
  for (const auto* greedy : {R"("max_new_tokens":5)", R"("temperature":1.0)", R"("top_p":1.0)",
                             R"("do_sample":false,"temperature":1)", R"("do_sample":null)"}) {
    INFO(greedy);
    CHECK(b.sampling(greedy).temperature == 0);
    CHECK(b.sampling(greedy).repetition_penalty == 1);
    CHECK(!b.sampling(greedy).seed.has_value());
  }
  for (const auto* drawn :
       {R"("do_sample":true)", R"("temperature":0.9)", R"("top_p":0.9)", R"("top_k":5)"}) {
    INFO(drawn);
    CHECK(b.sampling(drawn).temperature > 0);
    CHECK(b.sampling(drawn).seed.has_value());
  }
}

TEST_CASE("Without a limit an output ends where the context does, or the configured limit") {
  tgi_fixture b;
  CHECK(b.sampling(R"("details":true)").max_tokens == -1);
  b.limits.default_max_tokens = 9;
  CHECK(b.sampling(R"("details":true)").max_tokens == 9);
  CHECK(b.sampling(R"("max_new_tokens":20)").max_tokens == 20);
}

TEST_CASE("Log-probabilities are computed where the reply shows or compares them") {
  tgi_fixture b;
  CHECK(b.sampling(R"("max_new_tokens":5)").logprobs == -1);
  CHECK(b.sampling(R"("top_n_tokens":3)").logprobs == -1);
  CHECK(b.sampling(R"("details":true)").logprobs == 0);
  CHECK(b.sampling(R"("do_sample":true,"best_of":2)").logprobs == 0);
  CHECK(b.make(R"("max_new_tokens":5)", parse_generate_stream).requests[0].sampling.logprobs == 0);
  CHECK(b.make(R"("details":true)").requests[0].prompt_logprobs == -1);
  CHECK(b.make(R"("decoder_input_details":true)").requests[0].prompt_logprobs == 0);
}

TEST_CASE("What TGI refuses, and what is not here, is refused by name") {
  tgi_fixture b;
  const std::pair<const char*, const char*> cases[] = {
      {R"("temperature":0)", "`parameters.temperature` must be above 0 and at most 100, got 0"},
      {R"("temperature":"hot")", "`parameters.temperature` must be a number, got \"hot\""},
      {R"("top_k":0)", "`parameters.top_k` must be >= 1, got 0"},
      {R"("top_p":0)", "`parameters.top_p` must be above 0 and at most 1, got 0"},
      {R"("top_p":1.5)", "`parameters.top_p` must be above 0 and at most 1, got 1.5"},
      {R"("typical_p":0.5)",
       "`parameters.typical_p` must be 1 or absent: this server has no typical sampling, got 0.5"},
      {R"("repetition_penalty":0)", "`parameters.repetition_penalty` must be above 0, got 0"},
      {R"("frequency_penalty":3)", "`frequency_penalty` must be between -2 and 2, got 3"},
      {R"("max_new_tokens":0)", "`parameters.max_new_tokens` must be >= 1, got 0"},
      {R"("truncate":0)", "`parameters.truncate` must be >= 1, got 0"},
      {R"("seed":-1)", "`parameters.seed` must be a whole number of 0 or more, got -1"},
      {R"("watermark":true)",
       "`parameters.watermark` must be false or absent: this server marks no output, got true"},
      {R"("adapter_id":"x")",
       "`parameters.adapter_id` must be empty or absent: this server has no adapters, got \"x\""},
      {R"("best_of":0)", "`parameters.best_of` must be >= 1, got 0"},
      {R"("best_of":2)",
       "`parameters.best_of` must be 1 unless tokens are drawn, as with `do_sample`, got 2"},
      {R"("best_of":17,"do_sample":true)", "`parameters.best_of` must be <= 16, got 17"},
      {R"("best_of":2,"do_sample":true,"seed":1)",
       "`parameters.seed` must be absent where `best_of` is above 1, got 1"},
      {R"("stop":[1])", "`parameters.stop[0]` must be a string, got 1"},
      {R"("grammar":{"type":"gbnf","value":"x"})",
       R"(`parameters.grammar.type` must be "json", "regex" or "json_schema", got "gbnf")"},
      {R"("grammar":{"type":"json"})", "`grammar.value` must be given, got nothing"},
      {R"("grammar":{"type":"regex","value":1})",
       "`parameters.grammar.value` must be a text that is not empty, got 1"},
      {R"("grammar":7)", "`parameters.grammar` must be an object, got 7"},
      {R"("details":1)", "`parameters.details` must be true or false, got 1"},
      {R"("top_n_tokens":-1)", "`parameters.top_n_tokens` must be >= 0, got -1"},
  };
  for (const auto& [parameters, message] : cases) {
    INFO(parameters);
    CHECK(b.error(parameters) == message);
  }
  CHECK(b.error(R"("best_of":2,"do_sample":true)", parse_generate_stream) ==
        "`parameters.best_of` must be 1 in a stream, got 2");
  CHECK(b.error(R"("decoder_input_details":true)", parse_generate_stream) ==
        "`parameters.decoder_input_details` must be false in a stream, got true");
  const auto whole = [&](const char* body) {
    const auto made = parse_generate(json(body), b.context);
    return made.ok() ? std::string() : made.code().message;
  };
  CHECK(whole("{}") == "`inputs` must be given, got nothing");
  CHECK(whole(R"({"inputs":""})") == "`inputs` must be a text that is not empty, got \"\"");
  CHECK(whole(R"({"inputs":["a"]})") == "`inputs` must be a string, got [\"a\"]");
  CHECK(whole(R"({"inputs":"a","parameters":[]})") == "`parameters` must be an object, got []");
  CHECK(whole("[]") == "body must be a JSON object, got []");
}

TEST_CASE("A grammar is a schema, a pattern, or a schema with a name") {
  tgi_fixture b;
  using kind = config::grammar_kind;
  const auto form = [&](const std::string& grammar) {
    return *b.make("\"grammar\":" + grammar).requests.at(0).grammar;
  };
  for (const auto* schema :
       {R"({"type":"json","value":{"type":"object"}})",
        R"({"type":"json_object","value":{"type":"object"}})",
        R"({"type":"json","value":"{\"type\":\"object\"}"})",
        R"({"type":"json_schema","value":{"name":"x","schema":{"type":"object"}}})"}) {
    INFO(schema);
    CHECK(form(schema).kind == kind::json_schema);
    CHECK(form(schema).text == R"({"type":"object"})");
    CHECK(form(schema).closed_objects);
  }
  CHECK(form(R"({"type":"regex","value":"[ab]"})").text == "[ab]");
}

TEST_CASE("A whole reply has TGI's shape") {
  tgi_fixture b;
  auto plain = b.make(R"("max_new_tokens":5)");
  CHECK(play(plain, {started(), piece("Hel"), piece("lo"), end_token()}) ==
        R"({"generated_text":"Hello"})");

  auto c = b.make(R"("details":true,"top_n_tokens":2,"decoder_input_details":true,
                     "return_full_text":true,"do_sample":true,"seed":77)");
  auto first = started();
  first.prompt_scores = {{{5, "H", std::numeric_limits<float>::quiet_NaN()}, {}},
                         {{6, "i", -1.5f}, {}}};
  const auto body = json(play(c, {first, piece("Hel", 5), piece("lo", 6), end_token()}));
  CHECK(at(body, "generated_text") == value("HiHello"));
  const auto& details = at(body, "details");
  CHECK(at(details, "finish_reason") == value("eos_token"));
  CHECK(at(details, "generated_tokens") == value(3));
  CHECK(at(details, "seed") == value(77));
  CHECK(at(details, "prefill") ==
        json(R"([{"id":5,"text":"H","logprob":null},{"id":6,"text":"i","logprob":-1.5}])"));
  CHECK(at(details, "tokens", 0) ==
        json(R"({"id":5,"text":"Hel","logprob":-0.25,"special":false})"));
  CHECK(at(details, "tokens", 2) ==
        json(R"({"id":2,"text":"</s>","logprob":-0.5,"special":true})"));
  CHECK(at(details, "top_tokens", 0, 1) ==
        json(R"({"id":6,"text":"~","logprob":-2,"special":false})"));
  CHECK(details.find("best_of_sequences") == nullptr);
}

TEST_CASE("An output says why it ended") {
  tgi_fixture b;
  const auto reason = [&](actors::event last) {
    auto c = b.make(R"("details":true)");
    return at(json(play(c, {started(), piece("a"), std::move(last)})), "details", "finish_reason");
  };
  CHECK(reason(finished(actors::finish_reason::length)) == value("length"));
  CHECK(reason(finished(actors::finish_reason::stop)) == value("eos_token"));
  auto stopped = finished(actors::finish_reason::stop);
  stopped.stop_string = "a";
  CHECK(reason(stopped) == value("stop_sequence"));
}

TEST_CASE("The likeliest of several sequences is the reply, the others stand beside it") {
  tgi_fixture b;
  auto c = b.make(R"("best_of":3,"do_sample":true,"details":true)");
  CHECK(c.requests.at(0).sampling.n == 3);
  const auto token = [](std::int32_t choice, const char* text, float logprob) {
    auto ev = finished(actors::finish_reason::length, choice == 2, choice);
    ev.tokens.push_back({{1, text, logprob}, {}});
    ev.text = text;
    return ev;
  };
  // The mean counts: "bc" has a lower sum than "a" (-0.55 and -0.5), over more tokens.
  auto longer = piece("b", 5, 1); // log-probability -0.25
  const auto body = json(play(
      c, {started(), longer, token(0, "a", -0.5f), token(1, "c", -0.3f), token(2, "d", -9.0f)}));
  CHECK(at(body, "generated_text") == value("bc"));
  CHECK(at(body, "details", "generated_tokens") == value(2));
  CHECK(at(body, "details", "seed").is_null());
  CHECK(at(body, "details", "best_of_sequences").as_list()->size() == 2);
  CHECK(at(body, "details", "best_of_sequences", 0, "generated_text") == value("a"));
  CHECK(at(body, "details", "best_of_sequences", 1, "generated_text") == value("d"));
}

TEST_CASE("A stream has an event for each token, and the text in the last") {
  tgi_fixture b;
  auto c =
      b.make(R"("details":true,"top_n_tokens":2,"return_full_text":true)", parse_generate_stream);
  CHECK(c.stream);
  auto merged = piece("a", 5);
  merged.tokens.push_back({{6, "b", -1.0f}, {}});
  merged.text = "ab";
  const auto events = events_in(play(c, {started(4), merged, end_token()}));
  REQUIRE(events.size() == 3);
  for (int i = 0; i < 3; ++i)
    CHECK(at(events[static_cast<std::size_t>(i)], "index") == value(i + 1));
  CHECK(at(events[0], "token") == json(R"({"id":5,"text":"a","logprob":-0.25,"special":false})"));
  CHECK(at(events[0], "top_tokens").as_list()->size() == 2);
  CHECK(at(events[1], "token", "text") == value("b"));
  CHECK(at(events[1], "generated_text").is_null());
  CHECK(at(events[1], "details").is_null());
  CHECK(at(events[2], "token", "special") == value(true));
  CHECK(at(events[2], "generated_text") == value("Hiab"));
  CHECK(at(events[2], "details") ==
        json(R"({"finish_reason":"eos_token","generated_tokens":3,"seed":null,"input_length":4})"));

  auto bare = b.make(R"("max_new_tokens":5)", parse_generate_stream);
  const auto last = events_in(play(bare, {started(), piece("a"), finished()})).back();
  CHECK(last.find("top_tokens") == nullptr);
  CHECK(at(last, "details").is_null());
  CHECK(at(last, "generated_text") == value("a"));
  CHECK(at(last, "token", "text") == value(""));
}

TEST_CASE("Tokens of a stream have whole characters") {
  tgi_fixture b;
  auto c = b.make(R"("max_new_tokens":5)", parse_generate_stream);
  const auto token = [](std::string bytes, std::string text) {
    auto ev = piece(std::move(bytes));
    ev.text = std::move(text);
    return ev;
  };
  const auto events = events_in(play(
      c, {started(), token("a\xF0\x9F", "a"), token("\x8C", ""),
          token("\x8D\xC3", "\xF0\x9F\x8C\x8D"), token("x", "\xEF\xBF\xBDx"), token("\xE2", ""),
          token("\x82\xAC", "\xE2\x82\xAC"), token("\xE2\x82", ""), end_token()}));
  const char* expected[] = {"a",
                            "",
                            "\xF0\x9F\x8C\x8D",
                            "\xEF\xBF\xBDx",
                            "",
                            "\xE2\x82\xAC",
                            "",
                            "\xEF\xBF\xBD\xEF\xBF\xBD</s>"};
  REQUIRE(events.size() == std::size(expected));
  for (std::size_t i = 0; i < events.size(); ++i)
    CHECK(*at(events[i], "token", "text").as_string() == expected[i]);
}

TEST_CASE("A character that the end cuts is given as far as it came") {
  tgi_fixture b;
  auto c = b.make(R"("max_new_tokens":1)", parse_generate_stream);
  auto cut = piece("\xE2\x82");
  cut.text = "\xEF\xBF\xBD";
  cut.finish = actors::finish_reason::length;
  const auto events = events_in(play(c, {started(), std::move(cut)}));
  REQUIRE(events.size() == 1);
  CHECK(at(events[0], "token", "text").as_string()->substr(0, 3) == "\xEF\xBF\xBD");
  CHECK(at(events[0], "generated_text") == value("\xEF\xBF\xBD"));
}

TEST_CASE("The compatible route answers a list, or a stream where the body says so") {
  tgi_fixture b;
  auto whole = b.make(R"("max_new_tokens":5)", parse_compat_generate);
  CHECK(!whole.stream);
  CHECK(play(whole, {started(), piece("Hi"), end_token()}) == R"([{"generated_text":"Hi"}])");
  auto stream = parse_compat_generate(json(R"({"inputs":"a","stream":true})"), b.context);
  REQUIRE(stream.ok());
  CHECK(stream.value().stream);
  CHECK(events_in(play(stream.value(), {started(), piece("Hi"), end_token()})).size() == 2);
  CHECK(!parse_compat_generate(json(R"({"inputs":"a","stream":1})"), b.context).ok());
}

TEST_CASE("Errors have TGI's statuses, types and names of fields") {
  const auto styled = [](std::variant<errc, actors::errc> code, std::string message = "m") {
    const auto made = style_error({code, std::move(message), "", 0}, api_style::tgi, "req_1");
    return std::to_string(made.http_status) + " " + *at(json(made.body), "error_type").as_string() +
           " " + *at(json(made.body), "error").as_string();
  };
  CHECK(styled(errc::invalid_field) == "422 validation m");
  CHECK(styled(errc::bad_json) == "400 validation m");
  CHECK(styled(errc::unauthorized) == "401 invalid_api_key m");
  CHECK(styled(errc::unknown_route) == "404 unknown_route m");
  CHECK(styled(errc::body_too_large) == "413 body_too_large m");
  CHECK(styled(errc::busy) == "503 busy m");
  CHECK(styled(actors::errc::queue_full) == "429 overloaded m");
  CHECK(styled(actors::errc::rate_limited) == "429 overloaded m");
  CHECK(styled(actors::errc::unknown_model) == "404 model_not_found m");
  CHECK(styled(actors::errc::not_ready) == "503 model_not_ready m");
  CHECK(styled(actors::errc::executor_failed) == "424 generation m");
  CHECK(styled(actors::errc::timed_out) == "500 incomplete_generation m");
  CHECK(styled(actors::errc::grammar_refused) == "422 validation m");
  CHECK(styled(actors::errc::context_too_long,
               "`max_tokens` must be <= 4 with `prompt`, got `x` and ` alone") ==
        "422 validation `max_new_tokens` must be <= 4 with `inputs`, got `x` and ` alone");

  tgi_fixture b;
  auto c = b.make(R"("max_new_tokens":5)", parse_generate_stream);
  std::string out;
  c.encoder->on_error({actors::errc::executor_failed, "gone", ""}, out);
  CHECK(out == "data:{\"error\":\"gone\",\"error_type\":\"generation\"}\n\n");
}

TEST_CASE("TGI's form of /tokenize says where in the text each token stands") {
  codec_fixture b;
  const auto tokens = [&](const char* body) {
    auto made = tokenize_body(json(body), b.context);
    REQUIRE(made.ok());
    return json(made.value());
  };
  CHECK(
      tokens(R"({"inputs":"ab","add_special_tokens":false})") ==
      json(R"([{"id":97,"text":"a","start":0,"stop":1},{"id":98,"text":"b","start":1,"stop":2}])"));
  // The engine of this test puts a token in front that is not part of the text.
  CHECK(tokens(R"({"inputs":"a"})") ==
        json(R"([{"id":1,"text":"","start":0,"stop":0},{"id":97,"text":"a","start":0,"stop":1}])"));
  // A token that is one byte of a character has the position of the whole character.
  const auto accent = tokens("{\"inputs\":\"\xC3\xA1x\",\"add_special_tokens\":false}");
  CHECK(accent == json("[{\"id\":195,\"text\":\"\xC3\xA1\",\"start\":0,\"stop\":2},"
                       "{\"id\":161,\"text\":\"\xC3\xA1\",\"start\":0,\"stop\":2},"
                       "{\"id\":120,\"text\":\"x\",\"start\":2,\"stop\":3}]"));
  CHECK(tokenize_body(json(R"({"inputs":5})"), b.context).code().message ==
        "`inputs` must be a string, got 5");
}

namespace {

void play_mutated(const operations& sequence) {
  static const std::vector<std::string> names = {"inputs",
                                                 "parameters",
                                                 "stream",
                                                 "best_of",
                                                 "temperature",
                                                 "repetition_penalty",
                                                 "top_k",
                                                 "top_p",
                                                 "typical_p",
                                                 "do_sample",
                                                 "max_new_tokens",
                                                 "return_full_text",
                                                 "stop",
                                                 "truncate",
                                                 "watermark",
                                                 "details",
                                                 "decoder_input_details",
                                                 "seed",
                                                 "top_n_tokens",
                                                 "grammar",
                                                 "adapter_id",
                                                 "frequency_penalty",
                                                 "type",
                                                 "value"};
  value body = json(R"({"inputs":"Hi","stream":true,"parameters":{"best_of":1,"do_sample":true,
    "temperature":0.5,"max_new_tokens":5,"stop":["a"],"details":true,"top_n_tokens":2,
    "grammar":{"type":"json","value":{"type":"object"}}}})");
  for (const auto& op : sequence)
    mutate(body, op, names);
  tgi_fixture b;
  const auto first = sequence.empty() ? 0u : sequence.front().c;
  const codec parses[] = {parse_generate, parse_generate_stream, parse_compat_generate};
  auto made = parses[first % 3](body, b.context);
  if (!made.ok()) {
    const auto& error = made.code();
    demand(error.message.starts_with("body ") || !error.param.empty(),
           "a refusal names a field: " + error.message);
    json(tgi_error(error).body);
    return;
  }
  auto& c = made.value();
  const auto n = c.requests.at(0).sampling.n;
  demand(!config::validate(c.requests.at(0).sampling, b.limits, 1000), "the engine takes it");
  std::vector<actors::event> events{started()};
  for (std::int32_t i = 0; i < n; ++i) {
    events.push_back(piece("x", 100, i));
    events.push_back(end_token(i, i + 1 == n));
  }
  const auto out = play(c, std::move(events));
  if (c.stream)
    demand(at(events_in(out).back(), "generated_text").as_string() != nullptr, "it ends");
  else
    json(out);
}

} // namespace

TEST_CASE("Whatever TGI's body holds, it is read or refused by the name of a field") {
  CHECK(first_failure({.cases = 1500, .long_cases = 100'000, .most_operations = 6}, play_mutated) ==
        "");
}
