// How Ollama's routes write the events of a call, as lines and as one object.
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "net/protocol/ollama/models.hpp"
#include "net/protocol/ollama/reply.hpp"
#include "tests/catch.hpp"
#include "tests/net/support/codec_support.hpp"
#include "tests/support/operations.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::test;
using namespace twill::testing;
using kind = actors::output_part_kind;

namespace {

/// A clock that stands still unless a test moves it.
std::chrono::nanoseconds passed{0};
reply_moment test_clock() {
  using namespace std::chrono;
  return {system_clock::time_point(
              duration_cast<system_clock::duration>(seconds(1'700'000'000) + passed)),
          steady_clock::time_point(duration_cast<steady_clock::duration>(passed))};
}

ollama_reply_options options_of(bool chat, bool stream) {
  passed = 0ns;
  ollama_reply_options how;
  how.model = "asked:latest";
  how.id = "id";
  how.chat = chat;
  how.stream = stream;
  how.now = test_clock;
  return how;
}

struct playing {
  explicit playing(ollama_reply_options how) : encoder(std::move(how)) {}
  ollama_reply encoder;
  std::string out;

  playing& event(actors::event ev, std::chrono::nanoseconds after = 0ns) {
    passed += after;
    encoder.on_event(0, std::move(ev), out);
    return *this;
  }
  std::vector<value> lines() {
    encoder.on_end(out);
    std::vector<value> read;
    for (std::size_t begin = 0; begin < out.size();) {
      const auto end = out.find('\n', begin);
      if (end == std::string::npos) throw std::runtime_error("a line without an end: " + out);
      read.push_back(json(out.substr(begin, end - begin)));
      begin = end + 1;
    }
    return read;
  }
  value whole() {
    encoder.on_end(out);
    return json(out);
  }
};

actors::event parts(std::vector<actors::output_part> all) {
  actors::event ev;
  ev.parts = std::move(all);
  return ev;
}

} // namespace

TEST_CASE("Ollama: a stream has a line for each piece and a last one that is done") {
  playing p(options_of(true, true));
  CHECK(p.encoder.format().content_type == "application/x-ndjson");
  CHECK(p.encoder.format().filler.empty());
  p.event(started(), 5ms).event(piece("Hel\nlo"), 7ms).event(piece(""), 1ms);
  p.event(piece(" you"), 2ms).event(finished(), 3ms);
  const auto lines = p.lines();
  REQUIRE(lines.size() == 3);
  CHECK(lines[0] == json(R"({"model":"asked:latest","created_at":"2023-11-14T22:13:20.012000000Z",
      "message":{"role":"assistant","content":"Hel\nlo"},"done":false})"));
  CHECK(at(lines[1], "message", "content") == value(" you"));
  CHECK(lines[2] == json(R"({"model":"asked:latest","created_at":"2023-11-14T22:13:20.018000000Z",
      "message":{"role":"assistant","content":""},"done":true,"done_reason":"stop",
      "total_duration":18000000,"load_duration":5000000,"prompt_eval_count":3,
      "prompt_eval_duration":7000000,"eval_count":3,"eval_duration":6000000})"));
}

TEST_CASE("Ollama: a whole reply is one object with all of the answer") {
  playing p(options_of(false, false));
  p.event(started()).event(piece("a")).event(piece("b"));
  p.event(finished(actors::finish_reason::length));
  CHECK(p.out.empty());
  const auto whole = p.whole();
  CHECK(at(whole, "response") == value("ab"));
  CHECK(at(whole, "done") == value(true));
  CHECK(at(whole, "done_reason") == value("length"));
  CHECK(whole.find("message") == nullptr);
  CHECK(whole.find("context") == nullptr);
  CHECK(whole.find("thinking") == nullptr);
  CHECK(!contains(p.out, "\n"));
}

TEST_CASE("Ollama: thinking stands beside the answer") {
  for (const bool chat : {true, false}) {
    playing p(options_of(chat, false));
    p.event(started()).event(parts({{kind::reasoning, "hm"}, {kind::text, "so"}}));
    p.event(finished());
    const auto whole = p.whole();
    const auto& answer = chat ? at(whole, "message") : whole;
    CHECK(at(answer, "thinking") == value("hm"));
    CHECK(at(answer, chat ? "content" : "response") == value("so"));
  }
  playing p(options_of(true, true));
  p.event(parts({{kind::reasoning, "hm"}})).event(parts({{kind::text, "so"}})).event(finished());
  const auto lines = p.lines();
  CHECK(at(lines[0], "message") == json(R"({"role":"assistant","content":"","thinking":"hm"})"));
  CHECK(at(lines[1], "message") == json(R"({"role":"assistant","content":"so"})"));
}

TEST_CASE("Ollama: a call comes when it is whole, with its arguments as an object") {
  for (const bool stream : {true, false}) {
    playing p(options_of(true, stream));
    p.event(started());
    p.event(parts({{kind::call_begin, "f", 0}, {kind::call_arguments, "{\"a\":\n", 0}}));
    p.event(parts({{kind::call_arguments, "[1, 2]}", 0}, {kind::call_end, "", 0}}));
    p.event(parts({{kind::call_begin, "g", 1, true, "given"}, {kind::call_end, "", 1}}));
    p.event(finished(actors::finish_reason::tool_calls));
    std::vector<value> calls;
    std::vector<value> said;
    if (stream)
      said = p.lines();
    else
      said.push_back(p.whole());
    for (const auto& line : said)
      if (const auto* list = at(line, "message").find("tool_calls"))
        calls.insert(calls.end(), list->as_list()->begin(), list->as_list()->end());
    REQUIRE(calls.size() == 2);
    CHECK(at(calls[0], "function") == json(R"({"index":0,"name":"f","arguments":{"a":[1,2]}})"));
    CHECK(at(calls[0], "id").as_string()->starts_with("call_"));
    CHECK(calls[1] == json(R"({"id":"given","function":{"index":1,"name":"g","arguments":{}}})"));
    CHECK(at(said.back(), "done_reason") == value("stop"));
    CHECK(said.size() == (stream ? 3 : 1));
  }
}

TEST_CASE("Ollama: a call whose arguments are no object is text") {
  const auto text_of_call = [](std::vector<actors::output_part> all, bool stream) {
    playing p(options_of(true, stream));
    p.event(parts(std::move(all))).event(finished(actors::finish_reason::length));
    std::string text;
    for (const auto& line : stream ? p.lines() : std::vector<value>{p.whole()}) {
      text += *at(line, "message", "content").as_string();
      CHECK(at(line, "message").find("tool_calls") == nullptr);
    }
    return text;
  };
  for (const bool stream : {true, false}) {
    CHECK(text_of_call({{kind::call_begin, "f", 0},
                        {kind::call_arguments, "{\"a", 0},
                        {kind::call_end, "", 0, false}},
                       stream) == R"({"name": "f", "arguments": {"a)");
    CHECK(
        text_of_call(
            {{kind::call_begin, "f", 0}, {kind::call_arguments, "[1]", 0}, {kind::call_end, "", 0}},
            stream) == R"({"name": "f", "arguments": [1])");
    // The answer was cut before the call's end was known.
    CHECK(text_of_call({{kind::text, "so "}, {kind::call_begin, "f\"", 0}}, stream) ==
          R"(so {"name": "f\"", "arguments": )");
  }
}

TEST_CASE("Ollama: the ids of prompt and answer come with the last line where they are wanted") {
  for (const bool stream : {true, false}) {
    auto how = options_of(false, stream);
    how.context = true;
    playing p(how);
    auto first = started();
    first.prompt_ids = {7, 8};
    p.event(first).event(piece("a", 100)).event(piece("b", 50)).event(finished());
    const auto last = stream ? p.lines().back() : p.whole();
    CHECK(at(last, "context") == json("[7,8,100,50]"));
  }
}

TEST_CASE("Ollama: log-probabilities come with the tokens that they are of") {
  for (const bool stream : {true, false}) {
    auto how = options_of(true, stream);
    how.logprobs = true;
    playing p(how);
    p.event(started()).event(piece("a")).event(piece("")).event(finished());
    std::vector<value> scored;
    for (const auto& line : stream ? p.lines() : std::vector<value>{p.whole()})
      if (const auto* list = line.find("logprobs"))
        scored.insert(scored.end(), list->as_list()->begin(), list->as_list()->end());
    REQUIRE(scored.size() == 2); // tokens without text are scored as well
    CHECK(scored[0] == json(R"({"token":"a","logprob":-0.25,"bytes":[97],"top_logprobs":[
        {"token":"a","logprob":-0.25,"bytes":[97]},{"token":"~","logprob":-2,"bytes":[126]}]})"));
  }
}

TEST_CASE("Ollama: a stream that fails ends with a line that says why") {
  playing p(options_of(true, true));
  p.event(started()).event(piece("a"));
  p.out.clear();
  p.encoder.on_error({actors::errc::timed_out, "it took \"too\" long", ""}, p.out);
  CHECK(p.out == "{\"error\":\"it took \\\"too\\\" long\"}\n");
}

TEST_CASE("Ollama: a model that was loaded says so, and how long it took") {
  auto how = options_of(true, false);
  how.settled_as = "load";
  playing p(how);
  auto end = started(1);
  end.last = true;
  p.event(end, 4ms);
  CHECK(p.whole() == json(R"({"model":"asked:latest","created_at":"2023-11-14T22:13:20.004000000Z",
      "message":{"role":"assistant","content":""},"done":true,"done_reason":"load",
      "total_duration":4000000,"load_duration":4000000})"));
}

namespace {

/// However events are cut, a client that puts the lines together has what the whole reply says.
void play_reply(const operations& sequence) {
  const auto play = [&](bool stream) {
    auto how = options_of(true, stream);
    how.logprobs = !sequence.empty() && sequence.front().a % 2 == 0;
    auto p = std::make_unique<playing>(how);
    p->event(started());
    std::int32_t call = -1;
    bool open = false;
    const std::string texts[] = {"a", "\n", "\"", "\xc3\xa9", "{}", ""};
    for (const auto& op : sequence) {
      const auto& text = texts[op.b % 6];
      actors::event ev;
      if (op.c % 2 == 0) ev.tokens.push_back({{5, text, -1}, {}});
      switch (op.kind % 6) {
      case 0:
        ev.text = text;
        break;
      case 1:
        ev.parts.push_back({kind::reasoning, text});
        break;
      case 2:
        ev.parts.push_back({kind::call_begin, "f", ++call});
        open = true;
        break;
      case 3:
        if (open) ev.parts.push_back({kind::call_arguments, text, call});
        break;
      case 4:
        if (open) ev.parts.push_back({kind::call_end, "", call, op.a % 2 == 0});
        open = false;
        break;
      default:
        ev.parts.push_back({kind::text, text});
      }
      p->event(std::move(ev));
    }
    p->event(finished());
    return p;
  };
  const auto streamed = play(true);
  const auto lines = streamed->lines();
  const auto whole = play(false)->whole();
  std::string content, thinking;
  value_list calls, scores;
  for (const auto& line : lines) {
    content += *at(line, "message", "content").as_string();
    if (const auto* v = at(line, "message").find("thinking")) thinking += *v->as_string();
    if (const auto* v = at(line, "message").find("tool_calls"))
      calls.insert(calls.end(), v->as_list()->begin(), v->as_list()->end());
    if (const auto* v = line.find("logprobs"))
      scores.insert(scores.end(), v->as_list()->begin(), v->as_list()->end());
    demand(at(line, "done") == value(&line == &lines.back()), "the last line alone is done");
  }
  const auto& message = at(whole, "message");
  const auto* thought = message.find("thinking");
  const auto* called = message.find("tool_calls");
  const auto* scored = whole.find("logprobs");
  demand(at(message, "content") == value(content), "the content is the same");
  demand((thought == nullptr ? value("") : *thought) == value(thinking), "and the thinking");
  demand((called == nullptr ? value(value_list{}) : *called) == value(calls), "and the calls");
  demand((scored == nullptr ? value(value_list{}) : *scored) == value(scores), "and the scores");
  demand(at(whole, "eval_count") == at(lines.back(), "eval_count"), "and the counts");
}

} // namespace

TEST_CASE("Ollama: lines say all that the events said, as the whole reply does") {
  CHECK(first_failure({.cases = 400, .long_cases = 40'000, .most_operations = 30}, play_reply) ==
        "");
}

TEST_CASE("Ollama: what is listed of models") {
  ollama_model model;
  model.info.id = "org/name";
  model.info.family = "llama";
  model.info.quantization = "Q4_1";
  model.info.max_model_len = 4096;
  model.info.vocab_size = 1000;
  model.info.default_sampling.temperature = 0.5f;
  model.info.default_sampling.top_k = 20;
  model.info.created_unix_s = 1'600'000'000;
  model.info.need_bytes = 77;
  model.files = {1234, 1'700'000'000, "gguf"};

  const auto tags = at(json(ollama_tags_body(std::vector{model})), "models", 0);
  CHECK(at(tags, "name") == value("org/name:latest"));
  CHECK(at(tags, "model") == value("org/name:latest"));
  CHECK(at(tags, "size") == value(1234));
  CHECK(at(tags, "modified_at") == value("2023-11-14T22:13:20.000000000Z"));
  CHECK(at(tags, "digest").as_string()->size() == 64);
  CHECK(at(tags, "details") == json(R"({"parent_model":"","format":"gguf","family":"llama",
      "families":["llama"],"parameter_size":"","quantization_level":"Q4_1"})"));
  auto other = model;
  other.files.bytes += 1;
  const auto digest = [](const ollama_model& of) {
    return *at(json(ollama_tags_body(std::vector{of})), "models", 0, "digest").as_string();
  };
  CHECK(digest(model) == digest(model));
  CHECK(digest(model) != digest(other));

  const auto ps = [&] { return json(ollama_ps_body(std::vector{model})); };
  CHECK(at(ps(), "models", 0, "size") == value(77));
  CHECK(at(ps(), "models", 0, "size_vram") == value(0));
  CHECK(at(ps(), "models", 0, "context_length") == value(4096));
  model.on_gpu = true;
  CHECK(at(ps(), "models", 0, "size_vram") == value(77));
  model.info.state = actors::model_state::asleep;
  CHECK(at(ps(), "models").as_list()->empty());

  const auto show = json(ollama_show_body(model, "{{ tools }} <think>"));
  CHECK(at(show, "capabilities") == json(R"(["completion","tools","thinking"])"));
  CHECK(at(show, "template") == value("{{ tools }} <think>"));
  CHECK(at(show, "model_info", "general.architecture") == value("llama"));
  CHECK(at(show, "model_info", "llama.context_length") == value(4096));
  CHECK(contains(*at(show, "parameters").as_string(), "temperature                    0.5"));
  CHECK(contains(*at(show, "parameters").as_string(), "top_k                          20"));
  CHECK(!contains(*at(show, "parameters").as_string(), "min_p"));
  CHECK(contains(*at(show, "modelfile").as_string(), "FROM org/name:latest\n"));
  CHECK(at(json(ollama_show_body(model, "plain")), "capabilities") == json(R"(["completion"])"));

  CHECK(tagged_name("a") == "a:latest");
  CHECK(tagged_name("a:7b") == "a:7b");
  CHECK(tagged_name("host:80/a") == "host:80/a:latest");
}
