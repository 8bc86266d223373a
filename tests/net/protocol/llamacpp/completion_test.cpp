// llama.cpp's routes: how each field is used, what replies and errors look like, and that every
// request body is either read or refused with an error that names a field.
#include "net/protocol/llamacpp/completion.hpp"

#include "net/protocol/llamacpp/llamacpp_error.hpp"
#include "net/protocol/llamacpp/props.hpp"
#include "tests/catch.hpp"
#include "tests/net/support/body_mutation.hpp"
#include "tests/net/support/played_call.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::test;
using namespace twill::testing;

namespace {

struct llamacpp_fixture : codec_fixture {
  call make(const std::string& members) {
    auto made = parse_completion(
        json("{\"prompt\":\"Hi\"" + (members.empty() ? "" : "," + members) + "}"), context);
    if (!made.ok()) throw std::runtime_error(made.code().message);
    return std::move(made).value();
  }
  config::sampling_params sampling(const std::string& members) {
    return make(members).requests.at(0).sampling;
  }
  std::string error(const std::string& members) {
    const auto made = parse_completion(json("{\"prompt\":\"Hi\"," + members + "}"), context);
    return made.ok() ? "" : made.code().message;
  }
  std::vector<actors::request> prompts(const std::string& prompt) {
    auto made = parse_completion(json("{\"prompt\":" + prompt + "}"), context);
    if (!made.ok()) throw std::runtime_error(made.code().message);
    return std::move(made.value().requests);
  }
};

using ids = std::vector<std::int32_t>;
using biases = std::vector<std::pair<std::int32_t, float>>;

std::vector<value> events_in(const std::string& stream) {
  return stream_events(stream, "data: ");
}

} // namespace

TEST_CASE("Every field of llama.cpp that is honoured reaches the engine") {
  llamacpp_fixture b;
  const auto asked = b.make(R"("temperature":0.5,"top_k":7,"top_p":0.75,"min_p":0.125,
    "n_predict":33,"stop":["a","","b"],"repeat_penalty":1.25,"presence_penalty":0.5,
    "frequency_penalty":-0.5,"seed":42,"ignore_eos":true,"logit_bias":[[5,1.5],["ab",false]],
    "n_probs":4,"n_cmpl":2,"grammar":"root ::= \"a\"")")
                         .requests.at(0);
  const auto& s = asked.sampling;
  CHECK(s.temperature == 0.5f);
  CHECK(s.top_k == 7);
  CHECK(s.top_p == 0.75f);
  CHECK(s.min_p == 0.125f);
  CHECK(s.max_tokens == 33);
  CHECK(s.stop == std::vector<std::string>{"a", "b"});
  CHECK(!s.include_stop_str_in_output);
  CHECK(s.repetition_penalty == 1.25f);
  CHECK(s.presence_penalty == 0.5f);
  CHECK(s.frequency_penalty == -0.5f);
  CHECK(s.seed == 42u);
  CHECK(s.ignore_eos);
  CHECK(s.logit_bias == biases{{5, 1.5f}, {'a', -100.0f}, {'b', -100.0f}});
  CHECK(s.logprobs == 4);
  CHECK(s.n == 2);
  CHECK(asked.grammar->kind == config::grammar_kind::ebnf);
  CHECK(b.make(R"("json_schema":{"type":"object"},"grammar":"")").requests.at(0).grammar->kind ==
        config::grammar_kind::json_schema);
}

TEST_CASE("Defaults are llama.cpp's, where the model has none of its own") {
  llamacpp_fixture b;
  auto s = b.sampling("");
  CHECK(s.temperature == 0.8f);
  CHECK(s.top_k == 40);
  CHECK(s.top_p == 0.95f);
  CHECK(s.min_p == 0.05f);
  CHECK(s.max_tokens == -1);
  CHECK(s.logprobs == -1);
  CHECK(s.repetition_penalty == 1);
  b.model.default_sampling.temperature = 0.25f;
  CHECK(b.sampling("").temperature == 0.25f);
  b.limits.default_max_tokens = 9;
  CHECK(b.sampling("").max_tokens == 9);
}

TEST_CASE("Numbers beyond a range are the nearest in it, and -1 stands for no limit or any seed") {
  llamacpp_fixture b;
  const auto s = b.sampling(R"("temperature":-1,"top_k":-5,"top_p":7,"min_p":-1,"n_predict":-1)");
  CHECK(s.temperature == 0);
  CHECK(s.top_k == 0);
  CHECK(s.top_p == 1);
  CHECK(s.min_p == 0);
  CHECK(s.max_tokens == -1);
  CHECK(b.sampling(R"("n_predict":-2)").max_tokens == -1);
  CHECK(b.sampling(R"("n_predict":0)").max_tokens == 0);
  CHECK(b.sampling(R"("n_predict":5000)").max_tokens == -1); // beyond the context
  CHECK(b.sampling(R"("max_tokens":6)").max_tokens == 6);
  CHECK(b.sampling(R"("n_predict":5,"max_tokens":6)").max_tokens == 5);
  CHECK(b.sampling(R"("seed":-1)").seed != b.sampling(R"("seed":4294967295)").seed);
}

TEST_CASE("What is off passes, as llama.cpp's clients send it") {
  llamacpp_fixture b;
  CHECK(b.error(R"("dynatemp_range":0,"dynatemp_exponent":1,"typical_p":1,"repeat_last_n":64,
    "dry_multiplier":0,"dry_base":1.75,"dry_allowed_length":2,"dry_penalty_last_n":-1,
    "dry_sequence_breakers":["\n"],"xtc_probability":0,"xtc_threshold":0.1,"mirostat":0,
    "mirostat_tau":5,"mirostat_eta":0.1,"grammar":"","min_keep":0,"t_max_predict_ms":0,
    "id_slot":-1,"cache_prompt":true,"n_keep":0,"n_discard":0,"n_indent":0,"top_n_sigma":-1,
    "samplers":["penalties","dry","top_n_sigma","top_k","typ_p","top_p","min_p","xtc","temperature"],
    "post_sampling_probs":false,"return_progress":false,"lora":[],"tfs_z":1,"penalize_nl":false,
    "image_data":[],"logit_bias":[],"stop":[],"adaptive_target":-1,"seed":-1,"n_probs":0,
    "reasoning_budget_tokens":-1,"grammar_lazy":false,"grammar_triggers":[])") == "");
}

TEST_CASE("What llama.cpp has and is not here is refused by name when it is on") {
  llamacpp_fixture b;
  const std::pair<const char*, const char*> cases[] = {
      {R"("dynatemp_range":0.5)", "`dynatemp_range` must be 0"},
      {R"("top_n_sigma":1)", "`top_n_sigma` must be 0 or less"},
      {R"("xtc_probability":0.5)", "`xtc_probability` must be 0"},
      {R"("typical_p":0.5)", "`typical_p` must be 1"},
      {R"("dry_multiplier":0.8)", "`dry_multiplier` must be 0"},
      {R"("mirostat":2)", "`mirostat` must be 0"},
      {R"("adaptive_target":0.5)", "`adaptive_target` must be negative"},
      {R"("min_keep":3)", "`min_keep` must be 0 or 1"},
      {R"("n_indent":2)", "`n_indent` must be 0"},
      {R"("t_max_predict_ms":100)", "`t_max_predict_ms` must be 0"},
      {R"("reasoning_budget_tokens":5)", "`reasoning_budget_tokens` must be negative"},
      {R"("grammar_lazy":true)", "`grammar_lazy` must be false"},
      {R"("grammar_triggers":[{}])", "`grammar_triggers` must be an empty list"},
      {R"("image_data":[{}])", "`image_data` must be an empty list"},
      {R"("lora":[{"id":0,"scale":1}])", "`lora` must be an empty list"},
      {R"("lora":"x")", "`lora` must be an empty list"},
      {R"("n_probs":2,"post_sampling_probs":true)", "`post_sampling_probs` must be false"},
      {R"("samplers":["top_k","nope"])", "`samplers` must be of penalties"},
      {R"("samplers":["top_p","top_k","temperature"])", "`samplers` must be each once"},
      {R"("samplers":["top_k","top_k"])", "`samplers` must be each once"},
      {R"("samplers":7)", "`samplers` must be a list of names"},
      {R"("n_predict":-3)", "`n_predict` must be >= -2"},
      {R"("n_cmpl":17)", "`n` must be at most 16"},
      {R"("n_probs":21)", "`logprobs` must be"},
      {R"("temperature":"x")", "`temperature` must be a number"},
      {R"("repeat_last_n":-2)", "`repeat_last_n` must be >= -1"},
      {R"("logit_bias":7)", "`logit_bias` must be a list of pairs"},
      {R"("logit_bias":[7])", "`logit_bias[0]` must be a pair"},
      {R"("logit_bias":[[1,true]])", "`logit_bias[0]` must be a number within"},
      {R"("logit_bias":[[1,101]])", "`logit_bias[0]` must be a number within"},
      {R"("logit_bias":[[-1,1]])", "`logit_bias[0]` must be a token id"},
      {R"("logit_bias":[[1000,1]])", "`logit_bias` must be token ids"},
      {R"("stop":7)", "`stop` must be"},
      {R"("json_schema":{},"grammar":"root ::= x")", "`json_schema` must be absent"},
  };
  for (const auto& [members, message] : cases) {
    INFO(members);
    CHECK(b.error(members).substr(0, std::string(message).size()) == message);
  }
  CHECK(b.error(R"("xtc_probability":0.5,"xtc_threshold":0.6)") == "");
  CHECK(b.error(R"("dry_multiplier":0.8,"dry_penalty_last_n":0)") == "");
  CHECK(b.error(R"("lora":[{"id":0,"scale":0.0}])") == "");
  CHECK(b.error(R"("post_sampling_probs":true)") == "");
  CHECK(!b.error("\"logit_bias\":[[\"" + std::string(5000, 'a') + "\",1]]").empty());
}

TEST_CASE("A sampler that is not named is not applied") {
  llamacpp_fixture b;
  const auto only = [&](const std::string& samplers) {
    return b.sampling(R"("temperature":0.5,"top_k":7,"top_p":0.5,"min_p":0.25,
      "repeat_penalty":1.5,"samplers":)" +
                      samplers);
  };
  auto s = only(R"(["top_k"])");
  CHECK(s.top_k == 7);
  CHECK(s.temperature == 1);
  CHECK(s.top_p == 1);
  CHECK(s.min_p == 0);
  CHECK(s.repetition_penalty == 1);
  s = only(R"("ept")"); // letters: penalties, top_p, temperature
  CHECK(s.top_k == 0);
  CHECK(s.temperature == 0.5f);
  CHECK(s.top_p == 0.5f);
  CHECK(s.repetition_penalty == 1.5f);
  // This server's own order has the temperature before min_p, top_k and top_p.
  CHECK(only(R"(["penalties","temperature","min_p","top_k","top_p"])").top_k == 7);
  CHECK(b.sampling(R"("repeat_penalty":1.5,"repeat_last_n":0)").repetition_penalty == 1);
  CHECK(b.sampling(R"("repeat_penalty":1.5,"repeat_last_n":64)").repetition_penalty == 1.5f);
}

TEST_CASE("Biases are pairs or an object, of ids or texts") {
  llamacpp_fixture b;
  CHECK(b.sampling(R"("logit_bias":{"5":-2,"ab":1})").logit_bias ==
        biases{{5, -2.0f}, {'a', 1.0f}, {'b', 1.0f}});
  CHECK(b.sampling(R"("logit_bias":[[7,false]])").logit_bias == biases{{7, -100.0f}});
}

TEST_CASE("A prompt is a text, ids, both mixed, or a list of such") {
  llamacpp_fixture b;
  auto all = b.prompts(R"("Hi")");
  CHECK(std::get<actors::text_prompt>(all.at(0).prompt).add_special);
  CHECK(std::get<actors::token_prompt>(b.prompts("[12,34]").at(0).prompt) == ids{12, 34});
  // Only a text at the beginning gets a BOS token, which is 1 in this engine.
  CHECK(std::get<actors::token_prompt>(b.prompts(R"([12,"ab",34])").at(0).prompt) ==
        ids{12, 'a', 'b', 34});
  CHECK(std::get<actors::token_prompt>(b.prompts(R"(["a",34,"b"])").at(0).prompt) ==
        ids{1, 'a', 34, 'b'});
  CHECK(std::get<actors::text_prompt>(b.prompts(R"({"prompt_string":"x"})").at(0).prompt).text ==
        "x");
  all = b.prompts(R"(["a",[12,"b"],{"prompt_string":"c"},[1,2]])");
  REQUIRE(all.size() == 4);
  CHECK(std::get<actors::text_prompt>(all[0].prompt).text == "a");
  CHECK(std::get<actors::token_prompt>(all[1].prompt) == ids{12, 'b'});
  CHECK(std::get<actors::text_prompt>(all[2].prompt).text == "c");
  CHECK(std::get<actors::token_prompt>(all[3].prompt) == ids{1, 2});

  const auto error = [&](const std::string& prompt) {
    const auto made = parse_completion(json("{\"prompt\":" + prompt + "}"), b.context);
    return made.ok() ? std::string() : made.code().message;
  };
  CHECK(error("[]") ==
        "`prompt` must be a text, or a list of token ids and texts that is not empty, got []");
  CHECK(error("7").substr(0, 24) == "`prompt` must be a text,");
  CHECK(error("[[]]").substr(0, 11) == "`prompt[0]`");
  CHECK(error("[5,1000]") == "`prompt[1]` must be a token id below 1000, or a text, got 1000");
  CHECK(error("[5,-1]").substr(0, 11) == "`prompt[1]`");
  CHECK(error("[5,null]").substr(0, 11) == "`prompt[1]`");
  CHECK(error("[[5,true]]").substr(0, 14) == "`prompt[0][1]`");
  CHECK(error(R"({"prompt_string":"x","multimodal_data":["y"]})").substr(0, 24) ==
        "`prompt.multimodal_data`");
  CHECK(error("{}").substr(0, 22) == "`prompt.prompt_string`");
  CHECK(error("[1,\"" + std::string(70'000, 'a') + "\"]").substr(0, 11) == "`prompt[1]`");
  std::string many = "[1";
  for (int i = 0; i < 300; ++i)
    many += ",\"\"";
  CHECK(error(many + "]").substr(0, 13) == "`prompt[257]`");
  std::string prompts = "[\"a\"";
  for (int i = 0; i < 300; ++i)
    prompts += ",\"a\"";
  CHECK(error(prompts + "]").substr(0, 20) == "`prompt` must be at ");
}

TEST_CASE("A whole reply has llama.cpp's shape") {
  llamacpp_fixture b;
  auto c = b.make(R"("n_predict":5,"seed":7,"return_tokens":true,"n_probs":2)");
  auto last = finished(actors::finish_reason::stop);
  last.use = {9, 4, 2};
  const auto body = json(play(c, {started(9), piece("Hel\n", 5), piece("lo", 6), last}));
  CHECK(at(body, "index") == value(0));
  CHECK(at(body, "content") == value("Hel\nlo"));
  CHECK(at(body, "tokens") == json("[5,6]"));
  CHECK(at(body, "stop") == value(true));
  CHECK(at(body, "model") == value("test-model"));
  CHECK(at(body, "prompt") == value("Hi"));
  CHECK(at(body, "tokens_predicted") == value(2));
  CHECK(at(body, "tokens_evaluated") == value(9));
  CHECK(at(body, "tokens_cached") == value(4));
  CHECK(at(body, "has_new_line") == value(true));
  CHECK(at(body, "truncated") == value(false));
  CHECK(at(body, "stop_type") == value("eos"));
  CHECK(at(body, "stopping_word") == value(""));
  CHECK(at(body, "generation_settings", "seed") == value(7));
  CHECK(at(body, "generation_settings", "n_predict") == value(5));
  CHECK(at(body, "generation_settings", "top_k") == value(40));
  CHECK(at(body, "generation_settings", "samplers", 1) == value("temperature"));
  CHECK(at(body, "timings", "prompt_n") == value(5));
  CHECK(at(body, "timings", "cache_n") == value(4));
  CHECK(at(body, "timings", "predicted_n") == value(2));
  for (const auto* name : {"prompt_ms", "prompt_per_token_ms", "prompt_per_second", "predicted_ms",
                           "predicted_per_token_ms", "predicted_per_second"})
    CHECK(*at(body, "timings", name).as_number() >= 0);
  CHECK(at(body, "completion_probabilities", 1) ==
        json(R"({"id":6,"token":"lo","bytes":[108,111],"logprob":-0.25,"top_logprobs":[
          {"id":6,"token":"lo","bytes":[108,111],"logprob":-0.25},
          {"id":7,"token":"~","bytes":[126],"logprob":-2}]})"));

  auto bare = b.make("");
  const auto plain = json(play(bare, {started(), piece("a"), finished()}));
  CHECK(at(plain, "tokens") == json("[]"));
  CHECK(plain.find("completion_probabilities") == nullptr);
}

TEST_CASE("A completion says why it ended") {
  llamacpp_fixture b;
  const auto end = [&](actors::event last) {
    auto c = b.make("");
    const auto body = json(play(c, {started(), piece("a"), std::move(last)}));
    return *at(body, "stop_type").as_string() + "/" + *at(body, "stopping_word").as_string();
  };
  CHECK(end(finished(actors::finish_reason::length)) == "limit/");
  CHECK(end(finished(actors::finish_reason::stop)) == "eos/");
  auto stopped = finished(actors::finish_reason::stop);
  stopped.stop_string = "x";
  CHECK(end(stopped) == "word/x");
}

TEST_CASE("A stream brings parts and then an object with everything but the text") {
  llamacpp_fixture b;
  auto c = b.make(R"("stream":true,"n_probs":2,"timings_per_token":true)");
  const auto events =
      events_in(play(c, {started(9), piece("Hel", 5), piece("lo\n", 6), finished()}));
  REQUIRE(events.size() == 3);
  CHECK(at(events[0], "content") == value("Hel"));
  CHECK(at(events[0], "tokens") == json("[5]"));
  CHECK(at(events[0], "stop") == value(false));
  CHECK(at(events[0], "tokens_evaluated") == value(9));
  CHECK(at(events[0], "timings", "predicted_n") == value(1));
  CHECK(at(events[1], "completion_probabilities").as_list()->size() == 1);
  CHECK(at(events[2], "content") == value(""));
  CHECK(at(events[2], "tokens") == json("[]"));
  CHECK(at(events[2], "stop") == value(true));
  CHECK(at(events[2], "has_new_line") == value(true));
  CHECK(at(events[2], "tokens_predicted") == value(2));

  auto bare = b.make(R"("stream":true)");
  const auto first = events_in(play(bare, {started(), piece("a"), finished()})).front();
  CHECK(first.find("timings") == nullptr);
  CHECK(first.find("completion_probabilities") == nullptr);
}

TEST_CASE("Several prompts and choices are a list, and parts of a stream have their index") {
  llamacpp_fixture b;
  const auto begin = [&](const char* more) {
    auto made = parse_completion(
        json(std::string(R"({"prompt":["a","b"],"n_cmpl":2)") + more + "}"), b.context);
    REQUIRE(made.ok());
    std::string out;
    auto& encoder = *made.value().encoder;
    for (const std::size_t request : {1u, 0u})
      for (const std::int32_t choice : {1, 0}) {
        const auto name = std::string(request == 0 ? "a" : "b") + std::to_string(choice);
        encoder.on_event(request, piece(name, 5, choice), out);
        encoder.on_event(request, finished(actors::finish_reason::stop, choice == 0, choice), out);
      }
    encoder.on_end(out);
    return out;
  };
  const auto whole = json(begin(""));
  const char* expected[] = {"a0", "a1", "b0", "b1"};
  REQUIRE(whole.as_list()->size() == 4);
  for (int i = 0; i < 4; ++i) {
    CHECK(at(whole, i, "index") == value(i));
    CHECK(at(whole, i, "content") == value(expected[i]));
    CHECK(at(whole, i, "prompt") == value(i < 2 ? "a" : "b"));
  }
  std::map<std::int64_t, std::string> streamed;
  for (const auto& event : events_in(begin(R"(,"stream":true)")))
    streamed[*at(event, "index").as_int()] += *at(event, "content").as_string();
  for (int i = 0; i < 4; ++i)
    CHECK(streamed[i] == expected[i]);
}

TEST_CASE("What a reply repeats for each completion is bounded") {
  llamacpp_fixture b;
  std::string prompts = "[\"a\"";
  for (int i = 1; i < 200; ++i)
    prompts += ",\"a\"";
  const auto with = [&](const char* more) {
    return parse_completion(json("{\"prompt\":" + prompts + "]" + more + "}"), b.context);
  };
  CHECK(with("").ok());
  CHECK(with(R"(,"n_cmpl":2)").code().param == "n_cmpl");
  auto c = b.make("\"grammar\":\"" + std::string(20'000, 'x') + "\"");
  const auto body = json(play(c, {started(), piece("a"), finished()}));
  CHECK(at(body, "generation_settings", "grammar") == value("(20000 bytes)"));
}

TEST_CASE("Only the fields that are named are in the reply, each under its path") {
  llamacpp_fixture b;
  auto c = b.make(R"("n_predict":5,"response_fields":["content","generation_settings/n_predict",
                     "nope","content/x","timings/","content"])");
  CHECK(json(play(c, {started(), piece("Hi"), finished()})) ==
        json(R"({"content":"Hi","generation_settings/n_predict":5})"));
  CHECK(b.error(R"("response_fields":[7])") == "`response_fields[0]` must be a string, got 7");
}

TEST_CASE("Errors have llama.cpp's form and names of fields") {
  const auto styled = [](std::variant<errc, actors::errc> code, std::string message) {
    return style_error({code, std::move(message), "", 0}, api_style::llamacpp, "req_1");
  };
  const auto bad = styled(errc::invalid_field, "`repetition_penalty` must be above 0");
  CHECK(bad.http_status == 400);
  CHECK(bad.body == R"({"error":{"code":400,"message":"`repeat_penalty` must be above 0",)"
                    R"("type":"invalid_request_error"}})");
  CHECK(contains(styled(errc::unauthorized, "m").body,
                 R"("code":401,"message":"m","type":"authentication_error")"));
  CHECK(
      contains(styled(actors::errc::context_too_long, "m").body, "\"exceed_context_size_error\""));
  CHECK(contains(styled(actors::errc::not_ready, "m").body, "\"unavailable_error\""));
  llamacpp_fixture b;
  auto c = b.make(R"("stream":true)");
  std::string out;
  c.encoder->on_error({actors::errc::executor_failed, "gone", ""}, out);
  CHECK(out ==
        "data: {\"error\":{\"code\":500,\"message\":\"gone\",\"type\":\"server_error\"}}\n\n");
}

TEST_CASE("Properties and slots say what is there") {
  llamacpp_fixture b;
  const auto props = props_body(b.model, b.engine, 8);
  REQUIRE(props.ok());
  CHECK_FALSE(contains(props.value(), "/models/"));
  const auto all = json(props.value());
  CHECK(at(all, "total_slots") == value(8));
  CHECK(at(all, "model_alias") == value("test-model"));
  CHECK(at(all, "chat_template") == value("{{ messages }}"));
  CHECK(at(all, "bos_token") == value("<"));
  CHECK(at(all, "eos_token") == value(""));
  CHECK(at(all, "modalities", "vision") == value(false));
  CHECK(at(all, "is_sleeping") == value(false));
  CHECK(at(all, "default_generation_settings", "n_ctx") == value(4096));
  CHECK(at(all, "default_generation_settings", "params", "seed") ==
        value(std::int64_t{4294967295}));
  CHECK(*at(all, "default_generation_settings", "params", "top_k").as_int() == 40);

  const auto slots = json(slots_body(b.model, 3, 2));
  REQUIRE(slots.as_list()->size() == 3);
  CHECK(at(slots, 1, "is_processing") == value(true));
  CHECK(at(slots, 2) == json(R"({"id":2,"n_ctx":4096,"speculative":false,"is_processing":false})"));
}

TEST_CASE("A chat becomes its prompt") {
  llamacpp_fixture b;
  const auto prompt =
      apply_template_body(json(R"({"messages":[{"role":"user","content":"x"}]})"), b.context);
  REQUIRE(prompt.ok());
  CHECK(prompt.value() == R"({"prompt":"rendered"})");
  CHECK(apply_template_body(json("{}"), b.context).code().message ==
        "`messages` must be given, got nothing");
}

namespace {

void play_mutated(const operations& sequence) {
  static const std::vector<std::string> names = {"prompt",
                                                 "stream",
                                                 "temperature",
                                                 "dynatemp_range",
                                                 "top_k",
                                                 "top_p",
                                                 "min_p",
                                                 "n_predict",
                                                 "n_indent",
                                                 "n_keep",
                                                 "stop",
                                                 "typical_p",
                                                 "repeat_penalty",
                                                 "repeat_last_n",
                                                 "presence_penalty",
                                                 "frequency_penalty",
                                                 "dry_multiplier",
                                                 "xtc_probability",
                                                 "mirostat",
                                                 "grammar",
                                                 "json_schema",
                                                 "seed",
                                                 "ignore_eos",
                                                 "logit_bias",
                                                 "n_probs",
                                                 "min_keep",
                                                 "t_max_predict_ms",
                                                 "return_tokens",
                                                 "samplers",
                                                 "timings_per_token",
                                                 "post_sampling_probs",
                                                 "response_fields",
                                                 "lora",
                                                 "n_cmpl",
                                                 "max_tokens",
                                                 "image_data",
                                                 "prompt_string"};
  value body = json(R"({"prompt":["a",[1,"b"]],"stream":false,"n_predict":5,"temperature":0.5,
    "stop":["x"],"logit_bias":[[5,1.5],["a",false]],"n_probs":2,"samplers":["top_k","temperature"],
    "response_fields":["content","timings/prompt_n"],"seed":3,"lora":[]})");
  for (const auto& op : sequence)
    mutate(body, op, names);
  llamacpp_fixture b;
  auto made = parse_completion(body, b.context);
  if (!made.ok()) {
    const auto& error = made.code();
    demand(error.message.starts_with("body ") || !error.param.empty(),
           "a refusal names a field: " + error.message);
    json(llamacpp_error(error).body);
    return;
  }
  auto& c = made.value();
  std::string out;
  for (std::size_t r = 0; r < c.requests.size(); ++r) {
    const auto& sampling = c.requests[r].sampling;
    demand(!config::validate(sampling, b.limits, 1000), "the engine takes it");
    for (std::int32_t i = 0; i < sampling.n; ++i) {
      c.encoder->on_event(r, piece("x\xC3", 100, i), out);
      c.encoder->on_event(r, finished(actors::finish_reason::length, i + 1 == sampling.n, i), out);
    }
  }
  c.encoder->on_end(out);
  if (c.stream)
    events_in(out);
  else
    json(out);
}

} // namespace

TEST_CASE("Whatever llama.cpp's body holds, it is read or refused by the name of a field") {
  CHECK(first_failure({.cases = 1500, .long_cases = 100'000, .most_operations = 6}, play_mutated) ==
        "");
}
