// Structured output through engine_port, with a scripted runner in place of a model: grammars,
// grammars that compile while other requests stream, bad words, allowed ids, scores.
#include <atomic>
#include <string>
#include <thread>
#include <typeinfo>
#include <vector>

#include "actors/detail/message_probe.hpp"
#include "actors/executor/output_guard.hpp"
#include "actors/messages.hpp"
#include "tests/actors/engine_fixture.hpp"
#include "tests/catch.hpp"
#include "tests/models/text/grammar/byte_vocabulary.hpp"

using namespace scripted;
using actors::errc;
using actors::finish_reason;
using clock_type = std::chrono::steady_clock;

namespace {

config::grammar_spec spec_of(config::grammar_kind what, const std::string& text) {
  config::grammar_spec spec;
  spec.kind = what;
  spec.text = text;
  return spec;
}

config::grammar_spec small_schema() {
  return spec_of(config::grammar_kind::json_schema,
                 R"({"type": "object", "properties": {"a": {"enum": ["x", "yy", 3]},
                     "n": {"type": "integer", "minimum": 0, "maximum": 999},
                     "b": {"type": "array", "items": {"type": "boolean"}, "maxItems": 4}},
                     "required": ["a", "n", "b"], "additionalProperties": false})");
}

actors::request asking(const std::string& prompt, std::uint64_t seed,
                       const config::grammar_spec& spec) {
  auto r = text_request(prompt, 150, 1.0f);
  r.sampling.seed = seed;
  r.grammar = spec;
  return r;
}

/// 600 automata of a thousand states each, which take more than five seconds to compile.
config::grammar_spec bomb() {
  std::string root = "root ::= \"\"", rules;
  for (int i = 0; i < 600; ++i) {
    const auto n = std::to_string(i);
    root += " | r" + n;
    rules += "r" + n + " ::= Regex(\"([^a]|bb" + n + "){0,128}c" + n + "\")\n";
  }
  return spec_of(config::grammar_kind::ebnf, root + "\n" + rules);
}

std::atomic<int> n_pauses{0};
void count_pauses(actors::actor_kind actor, const std::type_info& message) {
  if (actor == actors::actor_kind::batcher && message == typeid(actors::pause_request)) ++n_pauses;
}

std::shared_ptr<script> wide_script() {
  auto plan = std::make_shared<script>();
  plan->max_context = 4000;
  plan->n_blocks = 2000;
  return plan;
}

} // namespace

TEST_CASE("outputs keep to their schema, each choice by itself, also when blocks run out",
          "[actors]") {
  config::options options;
  options.scheduler.max_running = 6;
  auto plan = std::make_shared<script>();
  plan->n_blocks = 60;
  fixture b(options, plan);
  REQUIRE(b.ready());
  const auto grammar = test::compiled(small_schema()).value();
  std::vector<recorder> all(12);
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto asked = asking(prompt_of(static_cast<int>(i), 20), 50 + i, small_schema());
    asked.sampling.n = i % 3 == 0 ? 3 : 1;
    asked.sampling.ignore_eos = i % 2 == 0; // the grammar's end still ends the output
    b.port.submit(asked, all[i].callback());
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    REQUIRE(all[i].wait_over());
    CHECK(all[i].broken() == "");
    REQUIRE_FALSE(all[i].error());
    for (std::size_t c = 0; c < (i % 3 == 0 ? 3u : 1u); ++c) {
      INFO(all[i].text(c));
      CHECK(*all[i].result(c).finish == finish_reason::stop);
      CHECK(test::passes(grammar, all[i].text(c)));
    }
  }
  CHECK(b.port.stats().preemptions > 0);
  CHECK(b.no_blocks_used());
}

TEST_CASE("an executor's restart leaves a waiting output where it stood in its grammar",
          "[actors]") {
  std::string undisturbed;
  actors::installed_probe() = count_pauses;
  for (const bool fails : {false, true}) {
    fixture b;
    REQUIRE(b.ready());
    recorder r, other;
    b.plan->hold();
    const auto id = b.port.submit(asking("the first", 7, small_schema()), r.callback());
    b.plan->allow(4);
    REQUIRE(r.wait_tokens(3));
    REQUIRE(b.plan->step_waits());
    n_pauses = 0;
    b.port.pause(id);
    REQUIRE(eventually([] { return n_pauses > 0; }));
    do { // steps planned before the pause are run one by one
      b.plan->allow(1);
    } while (b.plan->step_waits(std::chrono::milliseconds(100)) && !r.over());
    CHECK_FALSE(r.over());
    b.plan->open();
    if (fails) b.plan->fail_at = b.plan->steps.load();
    b.port.submit(text_request("the other", 3), other.callback());
    REQUIRE(other.wait_over());
    CHECK_FALSE(other.error()); // had streamed nothing, so the engine ran the request again
    b.port.resume(id);
    REQUIRE(r.wait_over());
    REQUIRE_FALSE(r.error());
    CHECK(b.plan->loads == (fails ? 2 : 1));
    if (undisturbed.empty()) undisturbed = r.text();
    CHECK(r.text() == undisturbed);
  }
  actors::installed_probe() = nullptr;
}

TEST_CASE("an output format that cannot be enforced is refused by name", "[actors]") {
  fixture b;
  REQUIRE(b.ready());
  for (const std::string field : {"", "response_format"}) {
    recorder r;
    auto asked = asking("x", 1,
                        spec_of(config::grammar_kind::json_schema,
                                R"({"type": "array", "unevaluatedItems": false})"));
    asked.grammar_field = field;
    b.port.submit(asked, r.callback());
    REQUIRE(r.wait_over());
    REQUIRE(r.error());
    CHECK(r.error()->code == errc::grammar_refused);
    CHECK(r.error()->param == (field.empty() ? "grammar" : field));
    CHECK(r.error()->message.starts_with("`" + r.error()->param + "` cannot be enforced: "));
    CHECK(r.error()->message.find("unevaluatedItems") != std::string::npos);
  }
}

TEST_CASE("white space between the parts of a JSON output is bounded, that of strings is not",
          "[actors]") {
  using namespace twill::test;
  auto rules = std::make_shared<actors::output_rules>();
  rules->tokens = byte_vocabulary();
  const auto made = compiled(schema_spec(R"({"type": "object"})"));
  REQUIRE(made.ok());
  rules->grammar = made.value();
  rules->is_json = true;
  actors::output_guard guard(rules);
  std::vector<std::uint32_t> mask(mask_words(byte_vocabulary()->size()));
  const auto may_follow = [&](char c) {
    guard.fill_mask(mask);
    const auto id = static_cast<unsigned char>(c);
    return (mask[id / 32u] >> (id % 32u) & 1) != 0;
  };
  const auto spaces = [&] {
    int n = 0;
    for (; n < 1000 && may_follow("\n \t"[n % 3]); ++n)
      REQUIRE(guard.accept("\n \t"[n % 3]));
    return n;
  };
  REQUIRE(guard.accept('{'));
  CHECK(spaces() == actors::most_json_space_bytes);
  CHECK(may_follow('}'));
  for (const char c : std::string("\"\\\""))
    REQUIRE(guard.accept(c));
  for (int i = 0; i < 500; ++i)
    REQUIRE(guard.accept(' '));
  CHECK(may_follow(' '));
  REQUIRE(guard.accept('"'));
  CHECK(spaces() == actors::most_json_space_bytes);
  REQUIRE(guard.accept(':'));
  CHECK(spaces() == actors::most_json_space_bytes);
  CHECK(may_follow('1'));
}

TEST_CASE("while a grammar compiles until its limit, streams and known grammars go on",
          "[actors]") {
  config::options options;
  options.structured.compile_timeout = std::chrono::milliseconds(800);
  fixture b(options, wide_script());
  REQUIRE(b.ready());
  recorder known;
  b.port.submit(asking("known", 1, small_schema()), known.callback());
  REQUIRE(known.wait_over());
  REQUIRE_FALSE(known.error());

  b.plan->delay_us = 2000;
  recorder stream, exploding, again;
  auto long_one = text_request("a stream", 3000);
  long_one.sampling.ignore_eos = true;
  const auto streaming = b.port.submit(long_one, stream.callback());
  REQUIRE(stream.wait_tokens(20));
  const auto undisturbed = clock_type::now();
  REQUIRE(stream.wait_tokens(120));
  const auto began = clock_type::now();
  const auto tokens = stream.n_tokens();
  b.port.submit(asking("bomb", 1, bomb()), exploding.callback());
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  b.port.submit(asking("known", 2, small_schema()), again.callback());
  REQUIRE(again.wait_over());
  CHECK_FALSE(again.error());
  CHECK_FALSE(exploding.over()); // a compiled grammar does not wait for one that compiles
  REQUIRE(exploding.wait_over());
  const double seconds = std::chrono::duration<double>(clock_type::now() - began).count();
  const double rate = static_cast<double>(stream.n_tokens() - tokens) / seconds;
  REQUIRE(exploding.error());
  CHECK(exploding.error()->code == errc::grammar_refused);
  CHECK(exploding.error()->message.find("structured.compile_timeout") != std::string::npos);
  CHECK(seconds < 60); // the limit is one of processor time
  // Tokens a second while no grammar is compiled: about 500 if nothing else runs on the machine,
  // and fewer otherwise.
  const double alone =
      static_cast<double>(tokens - 20) / std::chrono::duration<double>(began - undisturbed).count();
  CHECK(rate > alone / 5);
  b.port.cancel(streaming);
}

TEST_CASE("a request does not wait for its grammar beyond structured.wait_timeout", "[actors]") {
  config::options options;
  options.structured.compile_timeout = std::chrono::seconds(60);
  options.structured.wait_timeout = std::chrono::milliseconds(500);
  fixture b(options);
  REQUIRE(b.ready());
  recorder late;
  b.port.submit(asking("bomb", 1, bomb()), late.callback());
  REQUIRE(late.wait_over());
  REQUIRE(late.error());
  CHECK(late.error()->code == errc::queue_timed_out);
  CHECK(late.error()->message.find("structured.wait_timeout") != std::string::npos);
  recorder next;
  b.port.submit(asking("x", 1, small_schema()), next.callback());
  REQUIRE(next.wait_over());
  CHECK_FALSE(next.error());
}

TEST_CASE("a cancelled request's grammar is not compiled any further", "[actors]") {
  config::options options;
  options.structured.compile_timeout = std::chrono::seconds(60);
  fixture b(options);
  REQUIRE(b.ready());
  recorder lost, next;
  const auto id = b.port.submit(asking("bomb", 1, bomb()), lost.callback());
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  b.port.cancel(id);
  b.port.submit(asking("x", 1, small_schema()), next.callback());
  REQUIRE(next.wait_over());
  CHECK_FALSE(next.error());
  CHECK(lost.n_events() == 0);
}

TEST_CASE("an engine stops while a grammar compiles", "[actors]") {
  config::options options;
  options.structured.compile_timeout = std::chrono::seconds(60);
  recorder lost;
  const auto began = clock_type::now();
  {
    fixture b(options);
    b.leaves_requests = true;
    REQUIRE(b.ready());
    b.port.submit(asking("bomb", 1, bomb()), lost.callback());
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  CHECK(clock_type::now() - began < std::chrono::seconds(20));
}

TEST_CASE("an output of allowed ids has no other, and one without bad words has none", "[actors]") {
  fixture b;
  REQUIRE(b.ready());
  recorder r;
  auto asked = text_request("letters", 30, 1.0f);
  asked.sampling.allowed_token_ids = {'x', 'y', 'z'};
  asked.sampling.bad_words = {"xy", "z"};
  b.port.submit(asked, r.callback());
  REQUIRE(r.wait_over());
  CHECK(r.text().size() == 30);
  CHECK(r.text().find_first_not_of("xy") == std::string::npos);
  CHECK(r.text().find("xy") == std::string::npos);
}

TEST_CASE("a prompt's scores are those of its tokens, whatever is cached or runs beside",
          "[actors]") {
  config::options options;
  options.scheduler.max_step_tokens = 16;
  options.scheduler.max_running = 8;
  fixture b(options);
  REQUIRE(b.ready());
  std::vector<recorder> all(9);
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto asked = text_request(prompt_of(static_cast<int>(i % 3), 40), i % 2 == 0 ? 0 : 5);
    if (i != 1) asked.prompt_logprobs = 2;
    if (i == 3) asked.sampling.n = 3;
    b.port.submit(asked, all[i].callback());
    if (i == 2) REQUIRE(all[1].wait_over());
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(i);
    REQUIRE(all[i].wait_over());
    CHECK(all[i].broken() == "");
    REQUIRE_FALSE(all[i].error());
    CHECK(all[i].use().completion_tokens == (i % 2 == 0 ? 0 : i == 3 ? 15 : 5));
    const auto scores = all[i].scores();
    if (i == 1) {
      CHECK(scores.empty());
      continue;
    }
    const std::string prompt = prompt_of(static_cast<int>(i % 3), 40);
    REQUIRE(scores.size() == prompt.size());
    std::vector<std::int32_t> before;
    for (std::size_t p = 0; p < prompt.size(); ++p) {
      if (p > 0) {
        CHECK(scores[p].chosen.logprob == score_of(hash_of(before, 40, 0), prompt[p]));
        CHECK(scores[p].top.size() == 2);
      }
      CHECK(scores[p].chosen.id == prompt[p]);
      before.push_back(prompt[p]);
    }
  }
  CHECK(b.no_blocks_used());
}
