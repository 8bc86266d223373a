// model_pool, which serves several models and loads and unloads them as needed, over scripted
// engines: routes, waits, limits, drains and stops. Random requests check that the pool stays
// consistent while models are loaded and unloaded.
#include "actors/pool/model_pool.hpp"

#include <atomic>
#include <chrono>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "actors/port/request_summary.hpp"
#include "tests/actors/engine_fixture.hpp"
#include "tests/catch.hpp"

using namespace scripted;
using actors::engine_state;
using actors::errc;
using actors::model_order;
using actors::model_state;

namespace {

config::options options_for(std::size_t n) {
  config::options options;
  for (std::size_t m = 0; m < n; ++m) {
    auto& model = options.models.emplace_back();
    model.key = "m" + std::to_string(m);
    model.aliases = {"alias" + std::to_string(m)};
  }
  options.scheduler.restart_delay = 50ms;
  options.scheduler.restart_delay_max = 50ms;
  return options;
}

/// Models of 10 bytes each.
struct pool_fixture {
  pool_fixture(const config::options& o, std::int64_t budget) : options(o) {
    for (std::size_t m = 0; m < o.models.size(); ++m)
      plans.push_back(std::make_shared<script>());
    open_fails = std::make_shared<std::vector<std::atomic<bool>>>(o.models.size());
    actors::pool_parts parts;
    parts.open = [this](std::size_t m) -> actors::result<actors::opened_model> {
      if ((*open_fails)[m]) return failure{errc::executor_failed, "no such file"};
      auto files = std::make_shared<models::model>();
      files->name = "scripted";
      files->text = std::make_shared<byte_tokenizer>();
      files->spec.vocab_size = 257;
      files->default_sampling.top_k = 7;
      actors::opened_model opened;
      config::model_options own;
      own.name = options.models[m].id();
      opened.text = actors::make_served_text(own, std::move(files), 200);
      opened.need_bytes = 10;
      return opened;
    };
    parts.device_is_lost = [is = device_is_lost] { return is->load(); };
    parts.start = [this](std::size_t m, const actors::opened_model&, std::int64_t grant) {
      if (grant != 10) throw std::runtime_error("a grant of the wrong size");
      auto own = options;
      own.model.name = options.models[m].id();
      own.models.clear();
      return actors::start_engine_with(own, runners(plans[m]));
    };
    engine = actors::start_pool(options, budget, std::move(parts));
  }
  ~pool_fixture() {
    if (engine) check_at_rest(port());
  }
  pool_fixture(const pool_fixture&) = delete;
  pool_fixture& operator=(const pool_fixture&) = delete;
  actors::engine_port& port() { return engine->port(); }
  bool ready() {
    return eventually([&] { return port().state() == engine_state::ready; });
  }
  model_state state_of(std::size_t m) { return port().models().at(m).state; }
  bool reaches(std::size_t m, model_state wanted) {
    return eventually([&] { return state_of(m) == wanted; });
  }
  actors::request_id ask(recorder& to, const std::string& model, int seed = 1, int tokens = 5) {
    auto asked = text_request(prompt_of(seed, 20), tokens);
    asked.model = model;
    return port().submit(std::move(asked), to.callback());
  }

  /// Of the models that are awake.
  std::vector<actors::scheduler_snapshot> snapshots() {
    auto answer = std::make_shared<std::promise<std::vector<actors::scheduler_snapshot>>>();
    auto coming = answer->get_future();
    port().describe([answer](auto all) { answer->set_value(std::move(all)); });
    REQUIRE(coming.wait_for(patience) == std::future_status::ready);
    return coming.get();
  }

  config::options options;
  std::vector<std::shared_ptr<script>> plans;
  std::shared_ptr<std::vector<std::atomic<bool>>> open_fails;
  std::shared_ptr<std::atomic<bool>> device_is_lost = std::make_shared<std::atomic<bool>>(false);
  std::unique_ptr<actors::engine> engine;
};

/// Blocks the pool's dispatcher until free() is called. The dispatcher is the thread on which the
/// pool reports refusals to clients and submits requests that waited for a model.
struct busy_dispatcher {
  explicit busy_dispatcher(pool_fixture& b) : fixture(b) {
    auto asked = text_request("x", 1);
    asked.model = "nobody";
    b.port().submit(std::move(asked), [this](const actors::event&) {
      is_held.set_value();
      may_end.get_future().wait();
    });
    is_held.get_future().wait();
  }
  /// Waits until all earlier orders were applied, except for those to the dispatcher.
  void apply_orders() { fixture.port().cancel(0); }
  void free() { may_end.set_value(); }

  pool_fixture& fixture;
  std::promise<void> is_held, may_end;
};

} // namespace

TEST_CASE("a request wakes its model by id, alias or as the first", "[pool]") {
  pool_fixture b(options_for(2), 20);
  REQUIRE(b.ready());
  CHECK(b.state_of(1) == model_state::asleep);
  for (const std::string name : {"m1", "alias1", ""}) {
    recorder r;
    b.ask(r, name);
    REQUIRE(r.wait_over());
    CHECK_FALSE(r.error());
    CHECK(r.text() == solo(prompt_of(1, 20), 5).text);
  }
  CHECK(b.plans[1]->loads == 1);
  CHECK(b.plans[0]->loads == 1);
  recorder r;
  b.ask(r, "m2");
  REQUIRE(r.wait_over());
  REQUIRE(r.error());
  CHECK(r.error()->code == errc::unknown_model);
  CHECK(b.port().tokenize("m3", {"x", true}, true).code() == errc::unknown_model);
  CHECK(b.port().tokenize("alias1", {"xy", true}, true).value().size() == 2);
}

TEST_CASE("what was handed to its engine is cancelled, paused and resumed there", "[pool]") {
  pool_fixture b(options_for(1), 10);
  REQUIRE(b.ready());
  b.plans[0]->delay_us = 1000;
  recorder stays, goes;
  const auto asked = [](int seed) {
    auto request = text_request(prompt_of(seed, 20), 100);
    request.sampling.ignore_eos = true;
    return request;
  };
  b.port().submit(asked(1), stays.callback());
  const auto id = b.port().submit(asked(2), goes.callback());
  REQUIRE(goes.wait_tokens(2));
  b.port().pause(id);
  REQUIRE(stays.wait_over());
  CHECK_FALSE(goes.over());
  b.port().resume(id);
  REQUIRE(goes.wait_over());
  CHECK(goes.text() == solo(prompt_of(2, 20), 100, 0, 0, 0, true).text);

  recorder ends;
  const auto last = b.port().submit(asked(3), ends.callback());
  REQUIRE(ends.wait_tokens(2));
  b.port().cancel(last);
  const std::int64_t computed = b.plans[0]->computed;
  REQUIRE(eventually([&] { return b.port().stats().requests_running == 0; }));
  CHECK(b.plans[0]->computed < computed + 20); // far fewer than the hundred tokens asked for
  CHECK_FALSE(ends.over());
}

TEST_CASE("what waits for a model can be cancelled, times out, and is bounded", "[pool]") {
  auto options = options_for(2);
  options.scheduler.max_queued = 2;
  pool_fixture b(options, 10);
  REQUIRE(b.ready());
  b.plans[0]->hold(); // the model stays busy
  recorder busy, cancelled, late, more;
  b.ask(busy, "m0", 1, 3);
  REQUIRE(b.plans[0]->step_waits());
  const auto id = b.ask(cancelled, "m1");
  auto asked = text_request("xyz", 3);
  asked.model = "m1";
  asked.timeout = 200ms;
  b.port().submit(asked, late.callback());
  b.ask(more, "m1"); // two requests wait already
  REQUIRE(more.wait_over());
  CHECK(more.error()->code == errc::queue_full);
  REQUIRE(late.wait_over());
  CHECK(late.error()->code == errc::timed_out);
  b.port().cancel(id);
  CHECK(b.port().stats().requests_waiting == 0);
  // No request waits for m1 any more, so m0 continues as if nothing had happened.
  recorder next;
  b.ask(next, "m0", 2, 3);
  b.plans[0]->open();
  REQUIRE(busy.wait_over());
  REQUIRE(next.wait_over());
  CHECK(busy.text() == solo(prompt_of(1, 20), 3).text);
  CHECK(cancelled.n_events() == 0);
  CHECK(b.plans[0]->loads == 1);
  CHECK(b.plans[1]->loads == 0);
}

TEST_CASE("a model that cannot be opened or loaded refuses and is tried again", "[pool]") {
  auto options = options_for(2);
  pool_fixture b(options, 20);
  REQUIRE(b.ready());
  b.plans[1]->failing_loads = 1;
  recorder failed, other, again;
  b.ask(failed, "m1");
  REQUIRE(failed.wait_over());
  CHECK(failed.error()->code == errc::not_ready);
  CHECK(failed.error()->message.find("scripted load failure") != std::string::npos);
  CHECK(b.state_of(1) == model_state::failed);
  CHECK(b.port().state() == engine_state::ready);
  b.ask(other, "m0");
  REQUIRE(other.wait_over());
  CHECK_FALSE(other.error());
  (*b.open_fails)[1] = true;
  std::this_thread::sleep_for(60ms);
  recorder unopened;
  b.ask(unopened, "m1");
  REQUIRE(unopened.wait_over());
  CHECK(unopened.error()->message.find("no such file") != std::string::npos);
  (*b.open_fails)[1] = false;
  std::this_thread::sleep_for(60ms);
  b.ask(again, "m1");
  REQUIRE(again.wait_over());
  CHECK_FALSE(again.error());
}

TEST_CASE("a pool says which of its models cannot be opened, and fails when none can", "[pool]") {
  pool_fixture b(options_for(2), 20);
  REQUIRE(b.ready());
  for (std::size_t m = 0; m < 2; ++m) {
    CHECK(b.port().state() == engine_state::ready);
    (*b.open_fails)[m] = true;
    REQUIRE(b.port().order_model(b.options.models[m].key, model_order::unload).ok());
    REQUIRE(b.reaches(m, model_state::unloaded));
    recorder r;
    b.ask(r, b.options.models[m].key);
    REQUIRE(r.wait_over());
    CHECK(r.error()->code == errc::not_ready);
  }
  CHECK(b.port().state() == engine_state::failed);
  CHECK(b.port().state_detail() == "m0: no such file; m1: no such file");
}

TEST_CASE("a model whose engine stalls or gave up is reported until it serves again", "[pool]") {
  auto options = options_for(2);
  options.scheduler.watchdog = 50ms;
  options.scheduler.restart_delay = options.scheduler.restart_delay_max = 1ms;
  pool_fixture b(options, 20);
  b.plans[0]->n_blocks = 20; // of 4 tokens
  REQUIRE(b.ready());
  CHECK(b.port().models()[0].max_model_len == 200);
  recorder stalls;
  b.plans[0]->hold();
  b.ask(stalls, "m0");
  CHECK(eventually([&] { return b.port().state() == engine_state::stalled; }));
  CHECK(b.port().state_detail().find("watchdog") != std::string::npos);
  b.plans[0]->open();
  REQUIRE(stalls.wait_over());
  CHECK(b.ready());
  CHECK(b.port().models()[0].max_model_len == 80);

  b.plans[0]->failing_loads = 1'000'000;
  b.plans[0]->fail_at = b.plans[0]->steps.load();
  recorder fails;
  b.ask(fails, "m0");
  REQUIRE(fails.wait_over());
  CHECK(b.reaches(0, model_state::failed));
  CHECK(b.port().models()[0].detail.find("scripted load failure") != std::string::npos);
  CHECK(b.port().state() == engine_state::ready); // the other model can still serve
  b.plans[0]->failing_loads = 0;
  CHECK(b.reaches(0, model_state::ready));
}

TEST_CASE("a device that one model lost is lost to the pool", "[pool]") {
  pool_fixture b(options_for(2), 20);
  REQUIRE(b.ready());
  const bool by_load = GENERATE(false, true);
  recorder beside;
  b.ask(beside, "m1");
  REQUIRE(beside.wait_over());
  b.plans[0]->lost = true;
  if (by_load)
    b.plans[0]->failing_loads = 1;
  else
    b.plans[0]->fail_at = 0;
  recorder fails;
  b.ask(fails, "m0");
  REQUIRE(fails.wait_over());
  REQUIRE(fails.error());
  CHECK(eventually([&] { return b.port().state() == engine_state::lost; }));
  CHECK(b.port().state_detail().starts_with("m0: the device is lost: "));
  CHECK(b.state_of(0) == model_state::failed);
}

TEST_CASE("a pool reports a lost device also when the engine that lost it is gone", "[pool]") {
  pool_fixture b(options_for(2), 10); // room for one model at a time
  REQUIRE(b.ready());
  b.plans[1]->failing_loads = 1000; // must not be reported as the reason of the loss
  recorder refused;
  b.ask(refused, "m1");
  REQUIRE(refused.wait_over());
  REQUIRE(b.port().state_detail().starts_with("m1: "));
  *b.device_is_lost = true;
  CHECK(b.port().state() == engine_state::lost);
  CHECK(b.port().state_detail() == "the device is lost");
  b.port().drain([] {});
  CHECK(b.port().state() == engine_state::lost);
  CHECK(b.port().state_detail() == "the device is lost");
}

TEST_CASE("an administrator loads models and puts them to sleep", "[pool]") {
  pool_fixture b(options_for(2), 20);
  REQUIRE(b.ready());
  REQUIRE(b.port().order_model("alias0", model_order::load).ok());
  CHECK(b.reaches(0, model_state::ready));
  CHECK(b.port().models()[0].granted_bytes == 10);
  b.plans[0]->hold();
  recorder running, later;
  b.ask(running, "m0", 1, 3);
  REQUIRE(b.plans[0]->step_waits());
  REQUIRE(b.port().order_model("m0", model_order::sleep).ok());
  CHECK(b.reaches(0, model_state::draining));
  b.ask(later, "m0", 2, 3); // waits until the model is loaded again
  CHECK(b.port().models()[0].requests_waiting == 1);
  b.plans[0]->open();
  REQUIRE(running.wait_over());
  REQUIRE(later.wait_over());
  CHECK_FALSE(running.error());
  CHECK(later.text() == solo(prompt_of(2, 20), 3).text);
  CHECK(b.plans[0]->loads == 2);
  REQUIRE(b.port().order_model("m0", model_order::unload).ok());
  CHECK(b.reaches(0, model_state::unloaded));
  CHECK(eventually([&] {
    const auto tokens = b.port().tokenize("m0", {"x", true}, true);
    return !tokens.ok() && tokens.code() == errc::not_ready;
  }));
  const auto stats = b.port().stats(); // counters are kept
  CHECK(stats.finished_length + stats.finished_stop == 2);
  for (const std::string nobody : {"m9", ""}) // an order must name a model
    CHECK(b.port().order_model(nobody, model_order::load).code() == errc::unknown_model);
}

TEST_CASE("a reload reaches models that are awake, those that sleep, and the next load", "[pool]") {
  auto options = options_for(2);
  options.sampling.top_k = 3;
  pool_fixture b(options, 20);
  REQUIRE(b.ready());
  recorder first;
  b.ask(first, "m0");
  REQUIRE(first.wait_over());
  const auto defaults = [&](std::size_t m) { return b.port().models().at(m).default_sampling; };
  options.sampling.temperature = 0.25;
  options.sampling.top_k = -1;
  options.limits.max_choices = 1;
  b.engine->reload(options);
  for (std::size_t m = 0; m < 2; ++m) {
    CHECK(defaults(m).temperature == 0.25f);
    CHECK(defaults(m).top_k == 7); // as the model's own files say
    recorder two;
    auto asked = text_request("x", 1);
    asked.model = options.models[m].key;
    asked.sampling.n = 2;
    b.port().submit(std::move(asked), two.callback());
    REQUIRE(two.wait_over());
    REQUIRE(two.error());
    CHECK(two.error()->code == errc::invalid_argument);
  }
  CHECK(b.state_of(1) == model_state::ready);
  CHECK(defaults(1).temperature == 0.25f);
}

TEST_CASE("a reload changes the limits of requests that wait for their model", "[pool]") {
  auto options = options_for(2);
  pool_fixture b(options, 10);
  REQUIRE(b.ready());
  b.plans[0]->hold(); // the model stays busy
  recorder busy, first, second, impatient;
  b.ask(busy, "m0");
  REQUIRE(b.plans[0]->step_waits());
  options.tenants = {{"small", {}, 1, 0, 1}};
  b.engine->reload(options);
  auto asked = text_request("x", 3);
  asked.model = "m1";
  asked.tenant = asked.client = "small";
  b.port().submit(asked, first.callback());
  b.port().submit(asked, second.callback());
  REQUIRE(second.wait_over());
  REQUIRE(second.error());
  CHECK(second.error()->message.find("tenants.max_queued") != std::string::npos);
  options.scheduler.queue_timeout = 1ms;
  b.engine->reload(options);
  b.ask(impatient, "m1");
  REQUIRE(impatient.wait_over());
  REQUIRE(impatient.error());
  CHECK(impatient.error()->code == errc::queue_timed_out);
  CHECK(first.n_events() == 0); // queued before queue_timeout was set
  options.scheduler.queue_timeout = 0ms;
  b.engine->reload(options);
  b.plans[0]->open();
  REQUIRE(first.wait_over());
  CHECK_FALSE(first.error());
}

TEST_CASE("what tenants asked of a model stays counted while it sleeps and when it is back",
          "[pool]") {
  pool_fixture b(options_for(2), 20);
  REQUIRE(b.ready());
  CHECK(b.port().tenants().empty());
  const auto n_finished = [&](const std::string& model) {
    std::uint64_t n = 0;
    for (const auto& one : b.port().tenants())
      if (one.model == model && one.tenant == "t")
        for (const auto& [status, of_status] : one.finished)
          n += of_status;
    return n;
  };
  const auto ask = [&](const std::string& model) {
    recorder r;
    auto asked = text_request("x", 3);
    asked.model = model;
    asked.tenant = "t";
    b.port().submit(std::move(asked), r.callback());
    REQUIRE(r.wait_over());
  };
  ask("m0");
  ask("m0");
  ask("m1");
  CHECK(eventually([&] { return n_finished("m0") == 2 && n_finished("m1") == 1; }));
  REQUIRE(b.port().order_model("m0", model_order::sleep).ok());
  REQUIRE(b.reaches(0, model_state::asleep));
  CHECK(n_finished("m0") == 2);
  CHECK(n_finished("m1") == 1);
  ask("m0");
  CHECK(eventually([&] { return n_finished("m0") == 3; }));
}

TEST_CASE("mailboxes and snapshots are reported for each model that is awake", "[pool]") {
  pool_fixture b(options_for(3), 30);
  REQUIRE(b.ready());
  for (const std::size_t m : {1, 2}) {
    REQUIRE(b.port().order_model(b.options.models[m].key, model_order::load).ok());
    REQUIRE(b.reaches(m, model_state::ready));
  }
  std::map<std::string, std::set<std::string>> actors;
  for (const auto& one : b.port().mailboxes())
    CHECK(actors[one.model].insert(one.actor).second);
  REQUIRE(actors.size() == 2);
  CHECK(actors["m1"].contains("batcher"));
  CHECK(actors["m1"] == actors["m2"]);
  std::set<std::string> in_snapshots;
  for (const auto& snapshot : b.snapshots())
    in_snapshots.insert(snapshot.model);
  CHECK(in_snapshots == std::set<std::string>{"m1", "m2"});
}

TEST_CASE("the end of a request that reached no engine is reported", "[pool]") {
  pool_fixture b(options_for(2), 10);
  REQUIRE(b.ready());
  b.plans[0]->hold(); // the model stays busy
  recorder busy;
  b.ask(busy, "m0");
  REQUIRE(b.plans[0]->step_waits());
  std::vector<std::string> received;
  const auto ask = [&](recorder& r, const std::string& model) {
    auto asked = text_request("x", 3);
    asked.model = model;
    asked.on_end = [&](const actors::request_summary& about) {
      received.push_back(std::string(about.status) + (about.failed ? " failed" : ""));
      CHECK(about.sampling->max_tokens == 3);
    };
    return b.port().submit(std::move(asked), r.callback());
  };
  recorder unknown, cancelled;
  ask(unknown, "nobody");
  REQUIRE(unknown.wait_over());
  CHECK(received == std::vector<std::string>{"model_not_found failed"});
  b.port().cancel(ask(cancelled, "m1"));
  CHECK(received.size() == 2);
  CHECK(received.back() == "cancelled");
  b.plans[0]->open();
  REQUIRE(busy.wait_over());
}

TEST_CASE("a drain ends once waiting and running requests have ended", "[pool]") {
  pool_fixture b(options_for(2), 10);
  REQUIRE(b.ready());
  b.plans[0]->hold();
  recorder running, waiting, refused;
  b.ask(running, "m0", 1, 3);
  REQUIRE(b.plans[0]->step_waits());
  b.ask(waiting, "m1", 2, 3);
  std::atomic<bool> drained{false};
  b.port().drain([&] { drained = true; });
  b.ask(refused, "m0");
  REQUIRE(refused.wait_over());
  CHECK(refused.error()->code == errc::shutting_down);
  CHECK(b.port().order_model("m1", model_order::load).code() == errc::shutting_down);
  CHECK_FALSE(drained);
  b.plans[0]->open();
  REQUIRE(waiting.wait_over());
  CHECK_FALSE(waiting.error());
  CHECK(eventually([&] { return drained.load(); }));
}

TEST_CASE("requests that wait end when all are aborted, and are silent when the pool ends",
          "[pool]") {
  recorder silent;
  {
    pool_fixture b(options_for(2), 10);
    REQUIRE(b.ready());
    b.plans[0]->hold();
    recorder running, waiting;
    b.ask(running, "m0", 1, 3);
    REQUIRE(b.plans[0]->step_waits());
    b.ask(waiting, "m1");
    b.port().abort_all();
    REQUIRE(waiting.wait_over());
    CHECK(waiting.error()->code == errc::shutting_down);
    REQUIRE(running.wait_over());
    b.ask(silent, "m1");
    b.plans[0]->open();
  }
  const auto seen = silent.n_events();
  std::this_thread::sleep_for(20ms);
  CHECK(silent.n_events() == seen);
}

TEST_CASE("a request that is being handed to its engine is aborted too", "[pool]") {
  pool_fixture b(options_for(1), 10);
  REQUIRE(b.ready());
  b.plans[0]->delay_us = 2000;
  busy_dispatcher dispatcher(b);
  recorder sending;
  b.ask(sending, "m0", 1, 150);
  dispatcher.apply_orders();
  CHECK(b.reaches(0, model_state::ready));
  dispatcher.apply_orders(); // the dispatcher has to send it next
  b.port().abort_all();
  dispatcher.free();
  REQUIRE(sending.wait_over());
  REQUIRE(sending.error());
  CHECK(sending.error()->code == errc::shutting_down);
}

TEST_CASE("a request that is being handed to its engine is cancelled or paused there", "[pool]") {
  pool_fixture b(options_for(1), 10);
  REQUIRE(b.ready());
  b.plans[0]->hold();
  busy_dispatcher dispatcher(b);
  recorder cancelled, paused, refused, next;
  const auto lost = b.ask(cancelled, "m0", 1, 150);
  const auto slow = b.ask(paused, "m0", 2, 150);
  dispatcher.apply_orders();
  CHECK(b.reaches(0, model_state::ready));
  dispatcher.apply_orders(); // the dispatcher has to send them next
  b.port().cancel(lost);
  b.port().pause(slow);
  b.port().cancel(b.ask(refused, "nobody"));
  dispatcher.free();
  b.ask(next, "nobody");
  REQUIRE(next.wait_over());
  CHECK(refused.n_events() == 0);
  REQUIRE(eventually([&] {
    for (const auto& snapshot : b.snapshots())
      for (const auto& sequence : snapshot.sequences)
        if (sequence.paused) return true;
    return false;
  }));
  b.plans[0]->open();
  CHECK(eventually([&] { return b.port().stats().finished_abort == 1; }));
  CHECK(cancelled.n_events() == 0);
  b.port().resume(slow);
  REQUIRE(paused.wait_over());
  CHECK(paused.text() == solo(prompt_of(2, 20), 150).text);
}

TEST_CASE("a request that comes after an order to send others waits for its own", "[pool]") {
  pool_fixture b(options_for(1), 10);
  REQUIRE(b.ready());
  busy_dispatcher dispatcher(b);
  recorder first, second;
  b.ask(first, "m0", 1);
  dispatcher.apply_orders();
  CHECK(b.reaches(0, model_state::ready)); // the first has to be sent next
  REQUIRE(b.port().order_model("m0", model_order::sleep).ok());
  b.ask(second, "m0", 2);
  dispatcher.free();
  REQUIRE(first.wait_over());
  REQUIRE(second.wait_over());
  CHECK(second.text() == solo(prompt_of(2, 20), 5).text);
  CHECK(b.plans[0]->loads == 2);
  CHECK(eventually([&] {
    const auto model = b.port().models().front();
    return model.requests_under_way == 0 && model.requests_waiting == 0;
  }));
}

TEST_CASE("four models under a budget for two answer random requests, also with cancels and pauses",
          "[pool]") {
  // Events of cancelled requests may arrive late, so the recorders must outlive the pool.
  std::vector<std::deque<recorder>> recorders(6);
  pool_fixture b(options_for(4), 20);
  REQUIRE(b.ready());
  std::vector<std::thread> clients;
  std::atomic<int> wrong{0}, served{0};
  std::atomic<bool> over{false}, over_budget{false};
  for (std::uint32_t c = 0; c < 6; ++c)
    clients.emplace_back([&, c] {
      std::mt19937 random(c);
      for (int i = 0; i < 40; ++i) {
        recorder& r = recorders[c].emplace_back();
        const int seed = static_cast<int>(random() % 50),
                  tokens = 1 + static_cast<int>(random() % 20);
        const auto id = b.ask(r, "m" + std::to_string(random() % 4), seed, tokens);
        if (random() % 5 == 0) {
          std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
          b.port().cancel(id);
          continue;
        }
        if (random() % 5 == 0) {
          b.port().pause(id);
          b.port().resume(id);
        }
        if (!r.wait_over() || r.error() || r.text() != solo(prompt_of(seed, 20), tokens).text)
          ++wrong;
        ++served;
      }
    });
  std::thread watcher([&] {
    while (!over) {
      std::int64_t sum = 0;
      for (const auto& model : b.port().models())
        sum += model.granted_bytes;
      if (sum > 20) over_budget = true;
      std::this_thread::sleep_for(1ms);
    }
  });
  for (auto& client : clients)
    client.join();
  over = true;
  watcher.join();
  CHECK(wrong == 0);
  CHECK(served > 100);
  CHECK_FALSE(over_budget);
  int loads = 0;
  for (const auto& plan : b.plans)
    loads += plan->loads;
  CHECK(loads > 4);
  CHECK(eventually([&] { return b.port().stats().requests_running == 0; }));
}
