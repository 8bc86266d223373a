// Cached prefixes through engine_port, with a scripted runner whose text depends on every position
// of a sequence's KV.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/actors/engine_fixture.hpp"
#include "tests/catch.hpp"

using namespace scripted;

namespace {

recorder finished(fixture& b, const actors::request& asked) {
  recorder r;
  b.port.submit(asked, r.callback());
  REQUIRE(r.wait_over());
  CHECK(r.broken() == "");
  CHECK_FALSE(r.error());
  return r;
}

actors::request endless(const std::string& prompt, std::int32_t max_tokens) {
  auto asked = text_request(prompt, max_tokens);
  asked.sampling.ignore_eos = true;
  return asked;
}

std::string alone(const std::string& prompt, std::int32_t max_tokens, std::int32_t shareable = 0) {
  return solo(prompt, max_tokens, 0, 0, 0, true, shareable).text;
}

} // namespace

TEST_CASE("a prompt that was computed before is reported and not computed again", "[actors]") {
  fixture b;
  REQUIRE(b.ready());
  const std::string prompt = prompt_of(1, 44);
  for (int round = 0; round < 3; ++round) {
    const auto before = b.plan->computed.load();
    auto r = finished(b, endless(prompt, 9));
    CHECK(r.text() == alone(prompt, 9));
    CHECK(r.use().prompt_tokens == 44);
    CHECK(r.use().cached_tokens == (round == 0 ? 0 : 40)); // the last token is always computed
    CHECK(b.plan->computed - before == (round == 0 ? 52 : 12));
  }
  CHECK(b.no_blocks_used());
  CHECK(b.port.stats().prefix_cache_queries == 3 * 44);
  CHECK(b.port.stats().prefix_cache_hits == 2 * 40);
}

TEST_CASE("the next turn of a chat begins after the answer of the last", "[actors]") {
  fixture b;
  REQUIRE(b.ready());
  std::string chat = "system: be brief. user: hello";
  std::int32_t seen = 0;
  for (int turn = 0; turn < 4; ++turn) {
    auto r = finished(b, endless(chat, 15));
    CHECK(r.text() == alone(chat, 15));
    CHECK(r.use().cached_tokens == seen);
    chat += r.text();
    seen = (static_cast<std::int32_t>(chat.size()) - 1) / 4 * 4; // the last drawn token has no KV
    chat += " user: and turn " + std::to_string(turn);
  }
}

TEST_CASE("the token that stopped a text has no KV to be found", "[actors]") {
  fixture b;
  REQUIRE(b.ready());
  for (int length = 5; length < 13; ++length) { // the stop falls on every place in a block
    const std::string prompt = prompt_of(length, length);
    const std::string whole = alone(prompt, 6);
    if (whole.size() < 6) continue; // drew the end id, which has no text
    auto asked = endless(prompt, 20);
    asked.sampling.stop_token_ids = {whole[5]};
    const auto at = whole.find(whole[5]);
    auto r = finished(b, asked);
    CHECK(r.text() == whole.substr(0, at));
    const std::string next = prompt + whole.substr(0, at + 1) + "more";
    auto then = finished(b, endless(next, 10));
    CHECK(then.text() == alone(next, 10));
    CHECK(then.use().cached_tokens == (length + static_cast<std::int32_t>(at)) / 4 * 4);
  }
}

TEST_CASE("a prefix that still runs is shared with who comes meanwhile", "[actors]") {
  auto plan = std::make_shared<script>();
  plan->delay_us = 500;
  fixture b({}, plan);
  REQUIRE(b.ready());
  const std::string system = prompt_of(7, 40);
  recorder first;
  b.port.submit(endless(system + "one", 100), first.callback());
  REQUIRE(first.wait_tokens(3));
  auto second = finished(b, endless(system + "other", 20));
  CHECK_FALSE(first.over());
  CHECK(second.use().cached_tokens == 40);
  CHECK(second.text() == alone(system + "other", 20));
  REQUIRE(first.wait_over());
  CHECK(first.text() == alone(system + "one", 100));
}

TEST_CASE("without the cache nothing is reused", "[actors]") {
  config::options options;
  options.kv.prefix_cache = false;
  fixture b(options);
  REQUIRE(b.ready());
  for (int round = 0; round < 2; ++round) {
    auto r = finished(b, endless(prompt_of(1, 44), 9));
    CHECK(r.text() == alone(prompt_of(1, 44), 9));
    CHECK(r.use().cached_tokens == 0);
  }
  CHECK(b.port.stats().prefix_cache_queries == 0);
}

TEST_CASE("choices share a prompt that was cached", "[actors]") {
  fixture b;
  REQUIRE(b.ready());
  auto asked = text_request(prompt_of(3, 41), 12, 1.0f);
  asked.sampling.n = 4;
  asked.sampling.seed = 77;
  asked.sampling.ignore_eos = true;
  for (int round = 0; round < 3; ++round) {
    auto r = finished(b, asked);
    for (std::size_t i = 0; i < 4; ++i)
      CHECK(r.text(i) == solo(prompt_of(3, 41), 12, 1.0f, 77 + i, 0, true).text);
    CHECK(r.use().cached_tokens == (round == 0 ? 0 : 40));
    CHECK(b.no_blocks_used());
  }
}

TEST_CASE("a restarted executor's prefixes are forgotten", "[actors]") {
  fixture b;
  REQUIRE(b.ready());
  const std::string prompt = prompt_of(5, 33);
  finished(b, endless(prompt, 5));
  b.plan->fail_at = b.plan->steps.load() + 1; // the step after its first token
  recorder lost;
  b.port.submit(endless("lost", 5), lost.callback());
  REQUIRE(lost.wait_over());
  REQUIRE(lost.error());
  for (int round = 0; round < 2; ++round) {
    auto r = finished(b, endless(prompt, 5));
    CHECK(r.text() == alone(prompt, 5));
    CHECK(r.use().cached_tokens == (round == 0 ? 0 : 32));
  }
  CHECK(b.port.stats().executor_restarts == 1);
}

TEST_CASE("where KV depends on lengths, only sequences within the bound share", "[actors]") {
  auto plan = std::make_shared<script>();
  plan->shareable_length = 30;
  plan->max_context = 150;
  fixture b({}, plan);
  REQUIRE(b.ready());
  const std::string all = prompt_of(2, 90);
  const auto run = [&](int length, int max_tokens) {
    auto r = finished(b, endless(all.substr(0, static_cast<std::size_t>(length)), max_tokens));
    CHECK(r.text() == alone(all.substr(0, static_cast<std::size_t>(length)), max_tokens, 30));
    return r;
  };
  CHECK(run(25, 40).use().cached_tokens == 0); // the length passes the bound
  CHECK(run(25, 40).use().cached_tokens == 24);
  CHECK(run(60, 10).use().cached_tokens == 0);
  CHECK(run(70, 10).use().cached_tokens == 0); // the longer request has cached nothing either
  CHECK(run(60, 10).use().cached_tokens == 0);
  const auto turn = run(25, 5);
  CHECK(turn.use().cached_tokens == 24);
  const auto grown = all.substr(0, 25) + alone(all.substr(0, 25), 40, 30).substr(0, 20);
  auto r = finished(b, endless(grown, 10)); // 45 tokens are past the bound: other frequencies
  CHECK(r.text() == alone(grown, 10, 30));
  CHECK(r.use().cached_tokens == 0);
}

TEST_CASE(
    "under pressure, with preemptions, cancels and shared beginnings, texts are the solo ones",
    "[actors]") {
  const std::int32_t shareable = GENERATE(0, 40);
  config::options options;
  options.scheduler.max_step_tokens = 24;
  options.scheduler.max_running = 8;
  auto plan = std::make_shared<script>();
  plan->n_blocks = 40;
  plan->max_context = 160;
  plan->shareable_length = shareable;
  fixture b(options, plan);
  REQUIRE(b.ready());
  const auto prompt = [](int i) {
    return prompt_of(i % 4, 10 + (i * 13) % 50) + (i % 3 == 0 ? "" : prompt_of(i, i % 11));
  };
  const auto tokens = [](int i) { return 1 + (i * 29) % 80; };
  for (int round = 0; round < 3; ++round) {
    std::vector<recorder> all(60);
    std::vector<actors::request_id> live;
    for (int i = 0; i < 60; ++i) {
      auto asked = endless(prompt(i), tokens(i));
      if (i % 9 == 4) asked.sampling.n = 3;
      live.push_back(b.port.submit(asked, all[static_cast<std::size_t>(i)].callback()));
      if (i % 7 == 3) b.port.cancel(live[static_cast<std::size_t>(i - i % 3)]);
    }
    for (int i = 0; i < 60; ++i) {
      recorder& r = all[static_cast<std::size_t>(i)];
      bool cancelled = false;
      for (int k = i; k < std::min(i + 3, 60); ++k)
        cancelled = cancelled || (k % 7 == 3 && k - k % 3 == i);
      if (cancelled) continue;
      REQUIRE(r.wait_over());
      CHECK(r.broken() == "");
      CHECK_FALSE(r.error());
      for (std::size_t c = 0; c < (i % 9 == 4 ? 3u : 1u); ++c)
        CHECK(r.text(c) == alone(prompt(i), tokens(i), shareable));
    }
    CHECK(b.no_blocks_used());
  }
  CHECK(b.port.stats().preemptions > 0);
  CHECK(b.port.stats().prefix_cache_hits > 0);
}
