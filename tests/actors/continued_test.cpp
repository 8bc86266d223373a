// A request that continues after the tokens that an earlier run has drawn, as after a restart: the
// tokens, texts and finish reasons that follow are those of an undisturbed run, wherever the
// earlier run was cut and whatever runs beside it.
#include <atomic>
#include <stdexcept>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "actors/detail/message_probe.hpp"
#include "actors/messages.hpp"
#include "tests/actors/kept_events.hpp"
#include "tests/catch.hpp"

using namespace scripted;
using actors::errc;

namespace {

struct shape {
  std::string name;
  actors::request asked;
};

/// Requests with everything that has a state between two tokens.
std::vector<shape> shapes() {
  std::vector<shape> all;
  const auto add = [&all](const std::string& name, int prompt_length, std::int32_t max_tokens,
                          auto&& change) {
    const int i = static_cast<int>(all.size());
    auto asked = text_request(prompt_of(i, prompt_length), max_tokens, 1.0f);
    asked.sampling.seed = 500u + static_cast<unsigned>(i) * 10;
    change(asked);
    all.push_back({name, std::move(asked)});
  };
  /// The text that a request draws if no stop condition ends it.
  const auto text_of = [](const actors::request& r, std::size_t choice = 0) {
    return solo(std::get<actors::text_prompt>(r.prompt).text, r.sampling.max_tokens, 1.0f,
                *r.sampling.seed + choice, 0, true)
        .text;
  };
  const auto with_grammar = [](actors::request& r, config::grammar_kind what,
                               const std::string& text) {
    r.grammar.emplace();
    r.grammar->kind = what;
    r.grammar->text = text;
  };
  using kind = config::grammar_kind;
  add("greedy", 9, 30, [](auto& r) { r.sampling.temperature = 0; });
  add("length", 17, 30, [](auto& r) { r.sampling.ignore_eos = true; });
  add("min_tokens", 5, 30, [](auto& r) {
    const auto text = solo(prompt_of(2, 5), 30, 1.0f, *r.sampling.seed, 30).text;
    r.sampling.min_tokens = 15;
    r.sampling.stop = {text.substr(5, 3), text.substr(16, 5)};
  });
  add("penalties", 21, 25, [](auto& r) {
    r.sampling.repetition_penalty = 1.3f;
    r.sampling.presence_penalty = 0.5f;
    r.sampling.frequency_penalty = 0.5f;
  });
  add("bad words", 6, 30, [](auto& r) {
    for (char second = 'a'; second < 'n'; ++second)
      r.sampling.bad_words.push_back(std::string("k") + second);
    r.sampling.bad_words.push_back("abc");
  });
  add("a stop string", 13, 30, [&](auto& r) {
    r.sampling.ignore_eos = true;
    r.sampling.stop = {text_of(r).substr(15, 5)};
  });
  add("a stop string that stays in the output", 13, 30, [&](auto& r) {
    r.sampling.ignore_eos = r.sampling.include_stop_str_in_output = true;
    r.sampling.stop = {text_of(r).substr(15, 5), "zzzz"};
  });
  add("beginnings of stop strings", 12, 30, [&](auto& r) {
    r.sampling.ignore_eos = true;
    const auto text = text_of(r);
    r.sampling.stop = {text.substr(5, 4) + "!", text.substr(14, 6) + "!", text.substr(26) + "!"};
  });
  add("a stop id", 8, 40, [](auto& r) { r.sampling.stop_token_ids = {'q'}; });
  add("characters of several bytes", 10, 60,
      [&](auto& r) { with_grammar(r, kind::regex, "[äöü€😀]{8,15}"); });
  add("a regular expression", 10, 60,
      [&](auto& r) { with_grammar(r, kind::regex, "[a-f]{2,9}(gh|i)+[j-z]{3,20}"); });
  add("a schema for two choices", 11, 70, [&](auto& r) {
    with_grammar(r, kind::json_schema,
                 R"({"type": "object", "properties": {"a": {"enum": ["x", "yy", "ä€"]},
                     "n": {"type": "integer", "minimum": 0, "maximum": 99},
                     "b": {"type": "array", "items": {"type": "boolean"}, "maxItems": 2}},
                     "required": ["a", "n", "b"], "additionalProperties": false})");
    r.sampling.n = 2;
  });
  for (const int prompt_length : {1, 4, 8, 9, 27})
    add("three choices", prompt_length, 25, [](auto& r) { r.sampling.n = 3; });
  add("choices that end by stop strings", 18, 20, [&](auto& r) {
    r.sampling.n = 3;
    r.sampling.ignore_eos = true;
    r.sampling.stop = {text_of(r, 0).substr(3, 3), text_of(r, 2).substr(11, 4)};
  });
  add("log-probabilities", 15, 20, [](auto& r) {
    r.sampling.logprobs = 3;
    r.sampling.n = 2;
  });
  add("prompt ids", 14, 10, [](auto& r) { r.echo_prompt_ids = true; });
  add("scores of the prompt", 30, 10, [](auto& r) {
    r.prompt_logprobs = 2;
    r.sampling.n = 2;
  });
  return all;
}

std::vector<actors::event> events_of(kept_events& kept) {
  REQUIRE(kept.recorded().wait_over());
  CHECK(kept.recorded().broken() == "");
  return kept.all();
}

std::vector<actors::event> run(actors::engine_port& port, const actors::request& asked) {
  kept_events kept;
  port.submit(asked, kept.callback());
  return events_of(kept);
}

std::shared_ptr<script> plan_of(std::int32_t n_blocks) {
  auto plan = std::make_shared<script>();
  plan->weighs_counts = true;
  plan->n_blocks = n_blocks;
  return plan;
}

/// What each shape yields when nothing disturbs it.
const std::vector<std::vector<actors::event>>& undisturbed() {
  static const auto all = [] {
    std::vector<std::vector<actors::event>> events;
    fixture b({}, plan_of(100));
    REQUIRE(b.ready());
    for (const shape& one : shapes()) {
      events.push_back(run(b.port, one.asked));
      REQUIRE_FALSE(events.back().back().error);
    }
    return events;
  }();
  return all;
}

/// Checks the events of a request that continues after the first `cut` events of `before`.
void check_rest(const std::vector<actors::event>& events, const std::vector<actors::event>& before,
                std::size_t cut, const actors::request& asked) {
  REQUIRE(events.front().started);
  CHECK(events.front().prompt_scores.empty());
  CHECK(events.front().prompt_ids == before.front().prompt_ids);
  CHECK(words_of(events, 1, asked.sampling.n) == words_of(before, cut, asked.sampling.n));
  CHECK(events.back().use.completion_tokens == before.back().use.completion_tokens);
  CHECK(events.back().use.prompt_tokens == before.back().use.prompt_tokens);
  CHECK(events.back().use.cached_tokens <= events.back().use.prompt_tokens);
}

actors::request continued(const actors::request& asked, const std::vector<actors::event>& before,
                          std::size_t cut) {
  auto again = asked;
  again.made = made_by(before, cut, asked.sampling.n);
  return again;
}

/// Continues every shape after every `every`th event, all requests at once.
void go_on(fixture& b, std::size_t every = 1) {
  struct one {
    std::size_t shape, cut;
    kept_events kept;
  };
  const auto all_shapes = shapes();
  std::vector<one> all;
  std::size_t n_with_finished = 0;
  for (std::size_t s = 0; s < all_shapes.size(); ++s)
    for (std::size_t cut = 1; cut < undisturbed()[s].size(); cut += every)
      all.push_back({s, cut, {}});
  for (one& o : all) {
    const auto again = continued(all_shapes[o.shape].asked, undisturbed()[o.shape], o.cut);
    for (const auto& choice : again.made)
      n_with_finished += choice.finished ? 1 : 0;
    b.port.submit(again, o.kept.callback());
  }
  CHECK(n_with_finished > 10);
  for (one& o : all) {
    INFO(all_shapes[o.shape].name << " (shape " << o.shape << ") cut at " << o.cut);
    check_rest(events_of(o.kept), undisturbed()[o.shape], o.cut, all_shapes[o.shape].asked);
  }
  CHECK(b.no_blocks_used());
  CHECK(b.port.stats().requests_running + b.port.stats().requests_waiting == 0);
}

config::options tight() {
  config::options options;
  options.scheduler.max_step_tokens = 24;
  options.scheduler.max_running = 8;
  options.scheduler.max_queued = 5000;
  options.scheduler.restart_delay = options.scheduler.restart_delay_max = 1ms;
  return options;
}

} // namespace

TEST_CASE("a request goes on from every cut as if nothing had happened, also when blocks run out",
          "[actors]") {
  auto options = tight();
  options.kv.prefix_cache = GENERATE(true, false);
  fixture b(options, plan_of(60));
  REQUIRE(b.ready());
  go_on(b);
  CHECK(b.port.stats().preemptions > 20);
}

TEST_CASE("a request goes on from blocks that were in host memory", "[actors]") {
  auto options = tight();
  options.kv.host_memory_bytes = 300 * 8192;
  fixture b(options, plan_of(40));
  b.plan->delay_us = 1000; // computing blocks takes longer than fetching them
  REQUIRE(b.ready());
  go_on(b, 4);
  CHECK(b.plan->blocks_loaded > 20);
}

TEST_CASE("choices go on where more than their prompt is cached", "[actors]") {
  fixture b({}, plan_of(400));
  REQUIRE(b.ready());
  for (const int prompt_length : {1, 3, 4, 5, 16, 18}) {
    auto asked = text_request(prompt_of(prompt_length, prompt_length), 40, 1.0f);
    asked.sampling.seed = 3;
    asked.sampling.n = 3;
    asked.sampling.ignore_eos = true;
    const auto before = run(b.port, asked);
    for (std::size_t cut = 1; cut < before.size(); cut += 7) {
      INFO("prompt " << prompt_length << " cut at " << cut);
      const auto hits = b.port.stats().prefix_cache_hits;
      const auto computed = b.plan->computed.load();
      check_rest(run(b.port, continued(asked, before, cut)), before, cut, asked);
      const auto found = b.port.stats().prefix_cache_hits - hits;
      CHECK(found <= static_cast<std::uint64_t>(prompt_length));
      if (prompt_length < 5 || cut < 20) continue;
      CHECK(found > 0);
      // The first choice continues from cached blocks; the other two compute their output again.
      const auto left = static_cast<std::int64_t>(before.size() - cut);
      const auto made = static_cast<std::int64_t>(cut - 1);
      CHECK(b.plan->computed - computed < left + made * 2 / 3 + 30);
    }
  }
  CHECK(b.no_blocks_used());
}

TEST_CASE("a request that goes on survives a failed step, which drew nothing of it", "[actors]") {
  auto asked = text_request("of two choices", 20, 1.0f);
  asked.sampling.seed = 11;
  asked.sampling.n = GENERATE(1, 2);
  asked.sampling.ignore_eos = true;
  fixture b(tight());
  REQUIRE(b.ready());
  const auto before = run(b.port, asked);
  const std::size_t cut = GENERATE(2, 11);
  const auto again = continued(asked, before, cut);
  kept_events kept;
  b.plan->fail_at = b.plan->steps.load();
  b.port.submit(again, kept.callback());
  check_rest(events_of(kept), before, cut, asked);
  CHECK(b.port.stats().executor_restarts == 1);
  // A step that fails again and again fails the request.
  b.plan->fail_always = true;
  kept_events failed;
  b.port.submit(again, failed.callback());
  const auto events = events_of(failed);
  REQUIRE(events.back().error);
  CHECK(events.back().error->code == errc::executor_failed);
  CHECK(events.size() == 2);
}

TEST_CASE("a stream whose steps fail time and again is whole when each run goes on from the last",
          "[actors]") {
  auto asked = text_request(prompt_of(4, 15), 60, 1.0f);
  asked.sampling.seed = 21;
  asked.sampling.n = GENERATE(1, 3);
  asked.sampling.ignore_eos = true;
  const auto n = asked.sampling.n;
  std::vector<actors::event> before;
  {
    fixture b;
    REQUIRE(b.ready());
    before = run(b.port, asked);
  }
  fixture b(tight());
  REQUIRE(b.ready());
  std::vector<std::string> words(static_cast<std::size_t>(n));
  int runs = 0;
  for (bool over = false; !over; ++runs) {
    REQUIRE(runs < 1000);
    REQUIRE(b.ready());
    b.plan->fail_at = b.plan->steps + 5 + runs % 3;
    auto events = run(b.port, asked);
    over = !events.back().error.has_value();
    if (!over) {
      // After so many failures requests are refused for a moment.
      const auto code = events.back().error->code;
      CHECK((code == errc::executor_failed || code == errc::not_ready));
      events.pop_back();
    }
    const auto more = words_of(events, 1, n);
    for (std::size_t i = 0; i < words.size(); ++i)
      words[i] += more[i];
    if (asked.made.empty()) asked.made.resize(static_cast<std::size_t>(n));
    add_made(asked.made, events, events.size());
  }
  CHECK(runs > 3);
  CHECK(words == words_of(before, 1, n));
}

namespace {
std::atomic<bool> kills{false};
void kill_once(actors::actor_kind actor, const std::type_info& message) {
  if (actor == actors::actor_kind::batcher && message == typeid(actors::submit_prompt) &&
      kills.exchange(false))
    throw std::runtime_error("killed by the test");
}

struct probe_installed {
  probe_installed() { actors::installed_probe() = kill_once; }
  ~probe_installed() { actors::installed_probe() = nullptr; }
};
} // namespace

TEST_CASE("a request that goes on moves to the batcher that takes a lost one's place", "[actors]") {
  auto asked = text_request("moves", 20, 1.0f);
  asked.sampling.seed = 5;
  asked.sampling.n = 2;
  const probe_installed probe;
  fixture b;
  REQUIRE(b.ready());
  const auto before = run(b.port, asked);
  kills = true;
  check_rest(run(b.port, continued(asked, before, 9)), before, 9, asked);
  CHECK_FALSE(kills);
}

TEST_CASE("tokens of an earlier run count once in what is reported", "[actors]") {
  fixture b;
  REQUIRE(b.ready());
  auto asked = text_request("counted", 20, 1.0f);
  asked.sampling.seed = 5;
  asked.sampling.ignore_eos = true;
  const auto before = run(b.port, asked);
  const auto drawn = [&](std::uint64_t n) {
    return eventually([&] {
      const auto tenants = b.port.tenants();
      return b.port.stats().generation_tokens == n && tenants.size() == 1 &&
             tenants[0].generation_tokens == n;
    });
  };
  CHECK(drawn(20));
  run(b.port, continued(asked, before, 16));
  CHECK(drawn(25));
  CHECK(b.port.stats().prompt_tokens == 14); // the prompt was computed twice
}

TEST_CASE("what cannot be the output of an earlier run is refused and hurts nobody", "[actors]") {
  fixture b;
  REQUIRE(b.ready());
  auto asked = text_request("go on", 20);
  asked.sampling.ignore_eos = true;
  const auto refused = [&](std::vector<actors::made_choice> made) {
    auto again = asked;
    again.made = std::move(made);
    const auto events = run(b.port, again);
    REQUIRE(events.back().error);
    CHECK(events.back().error->code == errc::executor_failed);
    CHECK(events.back().tokens.empty());
    return events.size();
  };
  CHECK(refused({{{1, 2}, true}}) == 1);                // no choice is left to draw
  CHECK(refused({{{1, 2}, false}, {{3}, false}}) == 1); // one choice too many
  CHECK(refused({{{1, 257}, false}}) == 1);             // the model has no such token
  CHECK(refused({{{1, -1}, false}}) == 1);
  CHECK(refused({{std::vector<std::int32_t>(20, 'a'), false}}) == 1); // max_tokens is reached
  asked.sampling.stop = {"ab"};
  CHECK(refused({{{'x', 'a', 'b', 'c'}, false}}) == 1); // a stop string has ended this output
  asked.sampling.stop_token_ids = {'q'};
  CHECK(refused({{{'x', 'q'}, false}}) == 1);
  // The first step finds output that the grammar forbids, and output after the grammar's end.
  asked.grammar.emplace();
  asked.grammar->kind = config::grammar_kind::regex;
  asked.grammar->text = "[c-f]{3}";
  CHECK(refused({{{'c', 'x'}, false}}) == 2);
  CHECK(refused({{{'c', 'd', 'e', eos}, false}}) == 2);
  asked.grammar.reset();
  asked.sampling.max_tokens = 0;
  CHECK(refused({{{'x'}, false}}) == 1);
  CHECK(b.no_blocks_used());
  CHECK(b.port.stats().executor_restarts == 0);
  CHECK(run(b.port, text_request("go on", 5)).back().last);
}

TEST_CASE("a request goes on with the model that began it, and with no other", "[actors]") {
  fixture b;
  REQUIRE(b.ready());
  const auto asked = text_request("go on", 20);
  const auto before = run(b.port, asked);
  REQUIRE(before.size() > 5);
  const auto& began_with = before.front().continuity;
  CHECK_FALSE(began_with.empty());
  CHECK(run(b.port, asked).front().continuity == began_with);
  CHECK(run(b.port, text_request("another", 20)).front().continuity != began_with);
  auto ends_elsewhere = asked;
  ends_elsewhere.sampling.stop_token_ids = {'q'};
  CHECK(run(b.port, ends_elsewhere).front().continuity != began_with);
  auto again = continued(asked, before, 4);
  again.continues = began_with;
  CHECK(run(b.port, again).back().finish);
  again.continues += "0";
  const auto refused = run(b.port, again);
  REQUIRE(refused.size() == 1);
  REQUIRE(refused.front().error);
  CHECK(refused.front().error->code == errc::model_changed);
}
