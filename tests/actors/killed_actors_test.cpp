// Kills every actor at every message that it handles, one per run. Whichever actor dies, each
// request ends with its text or an error, the engine serves again, and a drain ends.
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "actors/detail/message_probe.hpp"
#include "tests/actors/engine_fixture.hpp"
#include "tests/catch.hpp"

using namespace scripted;
using actors::engine_state;
using actors::errc;

namespace {

/// The actor and message at which the probe throws, after `before` of them.
struct target {
  const char* actor;
  const char* message;
  int before = 0;
};

struct kill_order {
  target at;
  std::atomic<int> left{0};
  std::atomic<bool> done{false};
} orders[2];

void kill_at(const char* actor, const char* message) {
  for (kill_order& order : orders)
    if (order.at.actor != nullptr && std::strcmp(order.at.actor, actor) == 0 &&
        std::strcmp(order.at.message, message) == 0 && order.left-- == 0) {
      order.done = true;
      throw std::runtime_error("killed by the test");
    }
}

/// Installs the probe. It is declared before the engine, and so removed after it.
struct killing {
  explicit killing(target first, target second = {nullptr, nullptr}) {
    int i = 0;
    for (const target& t : {first, second}) {
      orders[i].at = t;
      orders[i].left = t.before;
      orders[i++].done = false;
    }
    actors::installed_probe() = kill_at;
  }
  ~killing() { actors::installed_probe() = nullptr; }
};

actors::request endless(const std::string& prompt, std::int32_t max_tokens) {
  auto asked = text_request(prompt, max_tokens);
  asked.sampling.ignore_eos = true;
  return asked;
}

/// Requests of all kinds: to the end, with a stop string, paused, cancelled, out of time, aborted.
void live_through(const killing&) {
  auto plan = std::make_shared<script>();
  plan->fail_at = 6;
  plan->delay_us = 100;
  config::options options;
  options.scheduler.restart_delay = options.scheduler.restart_delay_max = 1ms;
  options.scheduler.max_running = 4;
  fixture b(options, plan);
  REQUIRE(b.ready());
  std::vector<recorder> all(8);
  const auto submit = [&](std::size_t i, std::int32_t n) {
    auto asked = endless(prompt_of(static_cast<int>(i), 9), n);
    if (i == 1 || i == 2)
      asked.sampling.stop = {
          solo(prompt_of(static_cast<int>(i), 9), n, 0, 0, 0, true).text.substr(8, 3)};
    if (i == 3) asked.timeout = 3ms;
    return b.port.submit(std::move(asked), all[i].callback());
  };
  for (std::size_t i = 0; i < 4; ++i)
    submit(i, i == 3 ? 150 : 25);
  const auto paused = submit(4, 25);
  const auto cancelled = submit(5, 150);
  b.port.pause(paused);
  std::this_thread::sleep_for(1ms);
  b.port.cancel(cancelled);
  b.port.resume(paused);
  for (std::size_t i = 0; i < 5; ++i) {
    INFO("request " << i);
    REQUIRE(all[i].wait_over());
    CHECK(all[i].broken() == "");
    // On a busy machine a request may come only after the engine has begun to start again.
    if (all[i].error())
      CHECK((all[i].error()->code == errc::executor_failed ||
             all[i].error()->code == errc::not_ready ||
             (i == 3 && all[i].error()->code == errc::timed_out)));
    else if (i == 0 || i == 4)
      CHECK(all[i].text() == solo(prompt_of(static_cast<int>(i), 9), 25, 0, 0, 0, true).text);
  }
  REQUIRE(b.ready());
  submit(6, 150);
  std::atomic<bool> drained{false};
  b.port.drain([&] { drained = true; });
  b.port.abort_all();
  REQUIRE(all[6].wait_over());
  CHECK(eventually([&] { return drained.load(); }));
}

} // namespace

TEST_CASE("whichever actor dies at whichever message, requests end and the engine serves again",
          "[actors]") {
  std::vector<target> targets = {
      {"session", "start_request"},   {"session", "prompt_queued"},
      {"session", "token_ready"},     {"session", "token_ready", 9},
      {"session", "prompt_failed"},   {"session", "cancel_request"},
      {"session", "pause_request"},   {"session", "resume_request"},
      {"session", "deadline_passed"}, {"session", "abort_request"},
      {"batcher", "submit_prompt"},   {"batcher", "submit_prompt", 3},
      {"batcher", "finish_choice"},   {"batcher", "release_request"},
      {"batcher", "pause_request"},   {"batcher", "resume_request"},
      {"batcher", "executor_ready"},  {"batcher", "executor_ready", 1},
      {"batcher", "step_result"},     {"batcher", "step_result", 4},
      {"batcher", "kv_grant"},        {"batcher", "kv_grant", 3},
      {"kv_allocator", "kv_change"},  {"kv_allocator", "kv_change", 4},
      {"executor", "load_model"},     {"executor", "load_model", 1},
      {"executor", "step_plan"},      {"executor", "step_plan", 5},
      {"executor", "run_next"},       {"executor", "run_next", 5},
      {"executor", "skip_sequences"},
  };
  if (script().ahead)
    targets.insert(targets.end(),
                   {{"executor", "step_computed"}, {"executor", "step_computed", 5}});
  for (const target& t : targets) {
    INFO(t.actor << " at " << t.message << " after " << t.before);
    const killing dies(t);
    live_through(dies);
  }
}

TEST_CASE("an actor may die while another one's death is being mended", "[actors]") {
  const std::vector<std::pair<target, target>> pairs = {
      {{"batcher", "step_result", 2}, {"session", "scheduler_replaced"}},
      {{"batcher", "step_result", 2}, {"executor", "load_model", 1}},
      {{"batcher", "step_result", 2}, {"batcher", "executor_ready", 1}},
      {{"kv_allocator", "kv_change", 2}, {"executor", "run_next", 2}},
      {{"executor", "step_plan", 2}, {"batcher", "executor_ready", 1}},
      {{"executor", "load_model", 1}, {"executor", "load_model", 2}},
  };
  for (const auto& [first, second] : pairs) {
    INFO(first.actor << " at " << first.message << ", then " << second.actor << " at "
                     << second.message);
    const killing dies(first, second);
    live_through(dies);
  }
}

TEST_CASE("a batcher's death ends what was streamed and moves what was not", "[actors]") {
  const killing dies({"batcher", "step_result", 4});
  config::options options;
  options.scheduler.max_running = 1;
  auto plan = std::make_shared<script>();
  fixture b(options, plan);
  REQUIRE(b.ready());
  plan->hold();
  recorder streamed, waiting;
  b.port.submit(endless("streamed", 30), streamed.callback());
  plan->allow(2);
  REQUIRE(streamed.wait_tokens(1));
  b.port.submit(endless("waiting", 30), waiting.callback());
  REQUIRE(eventually([&] { return waiting.n_events() > 0; }));
  plan->open();
  REQUIRE(streamed.wait_over());
  REQUIRE(streamed.error());
  CHECK(streamed.error()->code == errc::executor_failed);
  CHECK(streamed.error()->message.find("retry") != std::string::npos);
  REQUIRE(waiting.wait_over());
  CHECK_FALSE(waiting.error());
  CHECK(waiting.broken() == "");
  CHECK(waiting.text() == solo("waiting", 30, 0, 0, 0, true).text);
  CHECK(plan->loads == 1); // weights stay
  CHECK(b.no_blocks_used());
}

TEST_CASE("the request of a session that died is computed no further", "[actors]") {
  const killing kills({"session", "token_ready", 2});
  auto plan = std::make_shared<script>();
  plan->hold();
  fixture b({}, plan);
  REQUIRE(b.ready());
  recorder r;
  b.port.submit(endless("for ever", 150), r.callback());
  plan->allow(4);
  REQUIRE(r.wait_over());
  REQUIRE(r.error());
  CHECK(r.error()->code == errc::executor_failed);
  plan->allow(10); // far fewer than the request asked for
  CHECK(b.no_blocks_used());
  CHECK(b.port.stats().requests_running == 0);
  plan->open();
}
