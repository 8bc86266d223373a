// pool_state, which decides which of several models have their weights in memory: examples of
// single rules, and its guarantees over random settings, requests, orders and faults.
#include "actors/pool/pool_state.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tests/catch.hpp"

using namespace twill::actors;
using namespace std::chrono_literals;
using phase = pool_state::phase;
using verdict = pool_state::verdict;

namespace {

const pool_state::time start{};

std::vector<pool_state::order> take_orders(pool_state& pool) {
  std::vector<pool_state::order> all;
  for (; pool.next_order() != nullptr; pool.drop_order())
    all.push_back(*pool.next_order());
  return all;
}

/// A pool whose models are opened and loaded as soon as that is ordered.
struct quick {
  quick(std::vector<pool_state::model_rules> rules, std::vector<std::int64_t> needs,
        std::int64_t budget)
      : pool(std::move(rules), {budget, 1s, 30s}), needs(std::move(needs)) {
    pool.begin(now);
    run();
  }
  void run() {
    for (auto orders = take_orders(pool); !orders.empty(); orders = take_orders(pool))
      for (const auto& order : orders) {
        if (const auto* o = std::get_if<pool_state::open>(&order))
          pool.opened(o->model, needs[o->model], now);
        if (const auto* l = std::get_if<pool_state::load>(&order)) pool.loaded(l->model, now);
        if (const auto* l = std::get_if<pool_state::leave>(&order)) pool.left(l->model, now);
      }
  }
  verdict ask(std::size_t m) {
    const auto answer = pool.asked(m, now);
    run();
    return answer;
  }
  void end(std::size_t m) {
    pool.ended(m, now);
    run();
  }
  void pass(pool_state::duration t) {
    now += t;
    pool.woken(now);
    run();
  }

  pool_state pool;
  std::vector<std::int64_t> needs;
  pool_state::time now = start;
};

} // namespace

TEST_CASE("a request loads its model, and the one used least recently makes room", "[pool]") {
  quick q({{}, {}, {}}, {10, 10, 10}, 20);
  CHECK(q.pool.now(0) == phase::asleep);
  CHECK(q.ask(0) == verdict::wait);
  CHECK(q.pool.now(0) == phase::awake);
  CHECK(q.pool.under_way(0) == 1);
  q.end(0);
  q.pass(1s);
  CHECK(q.ask(1) == verdict::wait);
  q.end(1);
  q.pass(1s);
  CHECK(q.ask(0) == verdict::send);
  q.end(0);
  q.pass(1s);
  CHECK(q.ask(2) == verdict::wait);
  CHECK(q.pool.now(2) == phase::awake);
  CHECK(q.pool.now(0) == phase::awake);
  CHECK(q.pool.now(1) == phase::asleep);
  CHECK(q.pool.granted() == 20);
}

TEST_CASE("a busy model gives way once its requests have ended", "[pool]") {
  quick q({{}, {}}, {10, 10}, 10);
  q.ask(0);
  CHECK(q.ask(1) == verdict::wait);
  CHECK(q.pool.now(0) == phase::draining);
  CHECK(q.ask(0) == verdict::wait);
  q.end(0); // model 0 sleeps, model 1 is loaded and serves, and 0 waits for 1 to end
  CHECK(q.pool.now(1) == phase::draining);
  CHECK(q.pool.under_way(1) == 1);
  q.end(1);
  CHECK(q.pool.now(0) == phase::awake);
  CHECK(q.pool.under_way(0) == 1);
}

TEST_CASE("a model that nobody waits for any more stays", "[pool]") {
  quick q({{}, {}}, {10, 10}, 10);
  q.ask(0);
  q.ask(1);
  q.ask(0);
  q.pool.gave_up(1, q.now);
  q.run();
  CHECK(q.pool.now(0) == phase::awake);
  CHECK(q.pool.under_way(0) == 2);
}

TEST_CASE("a model stays for as long as it took to load", "[pool]") {
  pool_state pool({{}, {}}, {10, 1s, 30s});
  pool.begin(start);
  pool.opened(0, 10, start);
  pool.opened(1, 10, start);
  pool.asked(0, start);
  pool.loaded(0, start + 4s);
  pool.asked(1, start + 5s);
  CHECK(pool.now(0) == phase::awake);
  REQUIRE(pool.wake_at());
  CHECK(*pool.wake_at() == start + 8s);
  CHECK(pool.asked(0, start + 6s) == verdict::send);
  pool.woken(start + 8s);
  CHECK(pool.now(0) == phase::draining);
}

TEST_CASE("pinned models are loaded at the start and never make room", "[pool]") {
  quick q({{true, 1s}, {}, {}}, {10, 10, 10}, 20);
  CHECK(q.pool.begun());
  CHECK(q.pool.now(0) == phase::awake);
  q.pass(1h);
  for (int i = 0; i < 4; ++i) {
    const std::size_t m = 1 + i % 2;
    CHECK(q.ask(m) == verdict::wait);
    q.end(m);
    CHECK(q.pool.now(0) == phase::awake);
    q.pass(1s);
  }
  // A pinned model that was ordered to sleep keeps its part of the budget.
  q.pool.ask_sleep(0, q.now);
  q.run();
  CHECK(q.pool.now(0) == phase::asleep);
  q.ask(1);
  q.ask(2);
  CHECK(q.pool.granted() == 10);
  CHECK(q.ask(0) == verdict::wait);
  CHECK(q.pool.now(0) == phase::awake);
}

TEST_CASE("a model sleeps after its keep_alive without a request", "[pool]") {
  quick q({{false, 10s}}, {10}, 20);
  q.ask(0);
  q.pass(1min);
  CHECK(q.pool.now(0) == phase::awake);
  q.end(0);
  CHECK(q.pool.wake_at() == q.now + 10s);
  q.pass(9s);
  CHECK(q.pool.now(0) == phase::awake);
  q.pass(1s);
  CHECK(q.pool.now(0) == phase::asleep);
  CHECK(q.pool.granted() == 0);
}

TEST_CASE("a model that does not load refuses, and is tried again later", "[pool]") {
  pool_state pool({{}}, {10, 1s, 3s});
  pool.begin(start);
  pool.opened(0, 10, start);
  CHECK(pool.asked(0, start) == verdict::wait);
  pool.load_failed(0, "no such file", start);
  CHECK(pool.detail(0) == "no such file");
  CHECK(pool.granted() == 0);
  CHECK(pool.asked(0, start + 999ms) == verdict::refuse);
  CHECK(pool.asked(0, start + 1s) == verdict::wait);
  CHECK(pool.now(0) == phase::opening);
  pool.open_failed(0, "no such file", start + 1s);
  CHECK(pool.waiting(0) == 0);
  CHECK(pool.asked(0, start + 2999ms) == verdict::refuse);
  CHECK(pool.asked(0, start + 3s) == verdict::wait);
}

TEST_CASE("a model that loads again has paid for the loads that failed before", "[pool]") {
  pool_state pool({{}}, {10, 1s, 30s});
  pool.begin(start);
  pool.opened(0, 10, start);
  const auto load_again = [&](pool_state::time now) {
    CHECK(pool.asked(0, now) == verdict::wait);
    pool.opened(0, 10, now);
    REQUIRE(pool.now(0) == phase::loading);
  };
  pool.asked(0, start);
  pool.load_failed(0, "no room", start);
  load_again(start + 1s);
  pool.loaded(0, start + 1s);
  CHECK(pool.detail(0).empty());
  CHECK(pool.under_way(0) == 1);
  pool.ended(0, start + 1s);
  pool.ask_sleep(0, start + 1s);
  pool.left(0, start + 1s);
  pool.asked(0, start + 1s);
  pool.load_failed(0, "no room", start + 1s);
  CHECK(pool.asked(0, start + 1999ms) == verdict::refuse);
  load_again(start + 2s); // after the delay of a first failure
}

TEST_CASE("files that do not open hold up nobody behind them", "[pool]") {
  pool_state pool({{}, {}}, {10, 1s, 30s});
  pool.begin(start);
  pool.opened(1, 10, start);
  CHECK(pool.asked(0, start) == verdict::wait);
  CHECK(pool.asked(1, start) == verdict::wait);
  CHECK(pool.now(1) == phase::asleep); // the model that was asked for first is loaded first
  pool.open_failed(0, "no such file", start);
  CHECK(pool.now(1) == phase::loading);
}

TEST_CASE("a model that is tried again has no place before those that came meanwhile", "[pool]") {
  pool_state pool({{}, {}, {}}, {30, 1s, 30s});
  pool.begin(start);
  for (std::size_t m = 0; m < 3; ++m)
    pool.opened(m, 10, start);
  pool.asked(0, start);
  pool.load_failed(0, "no room", start);
  pool.asked(2, start + 1s);
  pool.asked(1, start + 1s);
  CHECK(pool.asked(0, start + 1s) == verdict::wait);
  pool.loaded(2, start + 1s);
  CHECK(pool.now(1) == phase::loading);
}

TEST_CASE("a model that is fetched refuses, and nobody waits for it", "[pool]") {
  pool_state pool({{true, 0s}, {}, {}}, {30, 1s, 30s});
  pool.begin(start);
  CHECK(pool.asked(2, start) == verdict::wait); // its files may be here already
  CHECK(pool.waiting(2) == 1);
  pool.opened(1, 10, start);
  CHECK_FALSE(pool.begun());
  take_orders(pool);
  pool.fetching(0, start);
  pool.fetching(2, start);
  CHECK(pool.begun());
  CHECK(pool.waiting(2) == 0);
  const auto orders = take_orders(pool);
  REQUIRE(orders.size() == 1);
  CHECK(std::get<pool_state::refuse_waiting>(orders.front()).model == 2);
  CHECK(pool.asked(0, start) == verdict::refuse);
  CHECK(pool.detail(0) == "it is being fetched; ask again later");
  CHECK(pool.asked(1, start) == verdict::wait);
  CHECK(pool.now(1) == phase::loading);
  pool.loaded(1, start);
  pool.opened(0, 10, start);
  CHECK(pool.now(0) == phase::loading); // a pinned model is loaded without a request
  CHECK(pool.detail(0).empty());
  pool.open_failed(2, "no network", start);
  CHECK(pool.asked(2, start + 999ms) == verdict::refuse);
  CHECK(pool.detail(2) == "no network");
  pool.loaded(0, start + 1s);
  CHECK(pool.asked(2, start + 1s) == verdict::wait);
  CHECK(pool.now(2) == phase::opening);
  pool.fetching(2, start + 1s);
  CHECK(pool.detail(2) == "it is being fetched; ask again later (the last try: no network)");
}

TEST_CASE("a model that is unloaded while it is fetched closes its files", "[pool]") {
  pool_state pool({{}}, {30, 1s, 30s});
  pool.begin(start);
  pool.fetching(0, start);
  pool.ask_unload(0, start);
  pool.opened(0, 10, start);
  CHECK(pool.now(0) == phase::closed);
}

TEST_CASE("one model at a time makes room, and no more of them than have to", "[pool]") {
  quick q({{}, {}, {}}, {10, 10, 10}, 20);
  q.ask(0);
  q.pass(1s);
  q.ask(1);
  CHECK(q.ask(2) == verdict::wait);
  q.pass(1s);
  CHECK(q.pool.now(0) == phase::draining);
  CHECK(q.pool.now(1) == phase::awake);
}

TEST_CASE("a model that pinned ones leave no room for is refused with the numbers", "[pool]") {
  quick q({{true, 0s}, {}}, {20, 10}, 20);
  CHECK(q.ask(1) == verdict::refuse);
  CHECK(q.pool.detail(1).find("pinned models leave nothing") != std::string::npos);
}

TEST_CASE("unload closes the files and load opens them again", "[pool]") {
  quick q({{}}, {10}, 20);
  q.pool.ask_load(0, q.now);
  q.run();
  CHECK(q.pool.now(0) == phase::awake);
  q.pool.ask_unload(0, q.now);
  q.run();
  CHECK(q.pool.now(0) == phase::closed);
  q.pool.ask_load(0, q.now);
  q.run();
  CHECK(q.pool.now(0) == phase::awake);
}

TEST_CASE("an order to unload a model that failed leaves nothing of the failure", "[pool]") {
  pool_state pool({{}}, {20, 1s, 30s});
  pool.begin(start);
  pool.open_failed(0, "no such file", start);
  pool.ask_unload(0, start);
  CHECK(pool.now(0) == phase::closed);
  CHECK(pool.detail(0).empty());
}

TEST_CASE("an order to sleep while a model loads is applied once it has loaded", "[pool]") {
  pool_state pool({{}}, {20, 1s, 30s});
  pool.begin(start);
  pool.opened(0, 10, start);
  pool.ask_load(0, start);
  SECTION("at once without a request") {
    pool.ask_sleep(0, start);
    pool.loaded(0, start);
    CHECK(pool.now(0) == phase::leaving);
  }
  SECTION("after the requests that wait for it") {
    CHECK(pool.asked(0, start) == verdict::wait);
    pool.ask_sleep(0, start);
    pool.loaded(0, start);
    CHECK(pool.now(0) == phase::draining);
    CHECK(pool.under_way(0) == 1);
    pool.ended(0, start);
    CHECK(pool.now(0) == phase::leaving);
  }
  SECTION("and forgotten where the load fails") {
    pool.ask_unload(0, start);
    pool.load_failed(0, "no room", start);
    CHECK(pool.asked(0, start + 1s) == verdict::wait);
    pool.opened(0, 10, start + 1s);
    pool.loaded(0, start + 1s);
    CHECK(pool.now(0) == phase::awake);
  }
}

TEST_CASE("an order to load takes back one to sleep or unload that waits for requests", "[pool]") {
  quick q({{}}, {10}, 20);
  q.ask(0);
  q.pool.ask_unload(0, q.now);
  CHECK(q.pool.now(0) == phase::draining);
  q.pool.ask_load(0, q.now);
  CHECK(q.pool.now(0) == phase::awake);
  q.end(0);
  CHECK(q.pool.now(0) == phase::awake);
  q.pool.ask_sleep(0, q.now);
  q.run();
  CHECK(q.pool.now(0) == phase::asleep); // the model sleeps, but its files stay open
}

TEST_CASE("an order to load holds although a request for the model gives up", "[pool]") {
  pool_state pool({{}, {}}, {20, 1s, 30s});
  pool.begin(start);
  pool.opened(0, 10, start);
  pool.opened(1, 10, start);
  pool.ask_load(0, start);
  pool.ask_load(1, start); // waits behind model 0
  pool.asked(1, start);
  pool.gave_up(1, start);
  pool.loaded(0, start);
  CHECK(pool.now(1) == phase::loading);
}

TEST_CASE("an order to load that was applied is over when the model is evicted later", "[pool]") {
  quick q({{}, {}}, {10, 10}, 10);
  q.ask(0);
  q.ask(1);
  REQUIRE(q.pool.now(0) == phase::draining);
  q.pool.ask_load(0, q.now);
  q.pool.gave_up(1, q.now);
  CHECK(q.pool.now(0) == phase::awake);
  q.end(0);
  q.ask(1);
  REQUIRE(q.pool.now(1) == phase::awake);
  q.ask(0);
  q.pool.gave_up(0, q.now); // no request for model 0 is left
  CHECK(q.pool.now(1) == phase::awake);
}

TEST_CASE("an order to sleep while the pool starts does not hold it up", "[pool]") {
  pool_state pool({{true, 0s}, {true, 0s}, {}}, {30, 1s, 30s});
  pool.begin(start);
  pool.ask_sleep(0, start); // the model's files are being opened
  for (std::size_t m = 0; m < 3; ++m)
    pool.opened(m, 10, start);
  CHECK(pool.now(0) == phase::asleep);
  CHECK(pool.now(1) == phase::loading);
  CHECK_FALSE(pool.begun());
  pool.loaded(1, start);
  CHECK(pool.begun());
}

TEST_CASE("an order to sleep takes a pinned model from the queue for its first load", "[pool]") {
  pool_state pool({{true, 0s}, {true, 0s}}, {30, 1s, 30s});
  pool.begin(start);
  pool.opened(0, 10, start);
  pool.opened(1, 10, start);
  REQUIRE(pool.now(0) == phase::loading);
  SECTION("sleep") {
    pool.ask_sleep(1, start);
    CHECK(pool.now(1) == phase::asleep);
  }
  SECTION("unload") {
    pool.ask_unload(1, start);
    CHECK(pool.now(1) == phase::closed);
  }
  SECTION("sleep, although a request waits that then gives up") {
    pool.asked(1, start);
    pool.ask_sleep(1, start);
    CHECK_FALSE(pool.begun());
    pool.gave_up(1, start);
    CHECK(pool.now(1) == phase::asleep);
  }
  CHECK_FALSE(pool.begun());
  pool.loaded(0, start);
  CHECK(pool.begun());
}

TEST_CASE("an order to unload also closes files that are being opened", "[pool]") {
  pool_state pool({{}}, {20, 1s, 30s});
  pool.begin(start);
  pool.ask_unload(0, start);
  take_orders(pool);
  pool.opened(0, 10, start);
  CHECK(pool.now(0) == phase::closed);
  const auto orders = take_orders(pool);
  REQUIRE(orders.size() == 1);
  CHECK(std::holds_alternative<pool_state::close>(orders.front()));
  CHECK(pool.begun());
  // A request that comes meanwhile is served.
  pool.ask_load(0, start);
  pool.ask_unload(0, start);
  CHECK(pool.asked(0, start) == verdict::wait);
  pool.opened(0, 10, start);
  CHECK(pool.now(0) == phase::loading);
}

namespace {

/// Simulates the environment of a pool: opening, loading and unloading take a random time and may
/// fail; requests arrive, time out and end at random. It checks the guarantees after every input.
class world {
public:
  world(std::uint32_t seed, bool with_orders) : random_(seed), with_orders_(with_orders) {
    const std::size_t n = 1 + random_() % 5;
    std::int64_t pinned = 0;
    budget_ = 100;
    for (std::size_t m = 0; m < n; ++m) {
      needs_.push_back(1 + static_cast<std::int64_t>(random_() % 120));
      const bool pin = random_() % 5 == 0 && pinned + needs_[m] <= budget_ / 2;
      if (pin) pinned += needs_[m];
      const auto keep = std::chrono::milliseconds(static_cast<int>(random_() % 3000));
      rules_.push_back({pin, random_() % 2 == 0 ? 0ms : keep});
    }
    ordered_.assign(n, false);
    waiting_.assign(n, 0);
    under_way_.assign(n, 0);
    pool_.emplace(rules_, pool_state::limits{budget_, 100ms, 1s});
  }

  void play(int facts) {
    pool_->begin(now_);
    settle();
    for (int i = 0; i < facts; ++i)
      step(true);
    // No more requests arrive, so all must be served.
    for (int i = 0; i < 20'000 && !idle(); ++i)
      step(false);
    CHECK(idle());
    CHECK(pool_->begun());
  }

private:
  struct due {
    pool_state::order order;
  };

  bool idle() const {
    return due_.empty() && pool_->begun() &&
           std::all_of(waiting_.begin(), waiting_.end(), [](int n) { return n == 0; }) &&
           std::all_of(under_way_.begin(), under_way_.end(), [](int n) { return n == 0; });
  }

  void step(bool with_requests) {
    now_ += 1ms * (random_() % 40);
    if (pool_->wake_at() && *pool_->wake_at() <= now_) pool_->woken(now_);
    settle();
    const std::size_t m = random_() % rules_.size();
    switch (random_() % (with_requests ? 8 : 4)) {
    case 0:
    case 1:
      if (!due_.empty()) finish_one();
      break;
    case 2:
    case 3:
      if (under_way_[m] > 0) {
        --under_way_[m];
        pool_->ended(m, now_);
      }
      break;
    case 4:
      if (waiting_[m] > 0) {
        --waiting_[m];
        pool_->gave_up(m, now_);
      }
      break;
    case 5:
      if (with_orders_ && random_() % 4 == 0) {
        ordered_[m] = true;
        const auto what = random_() % 3;
        if (what == 0) pool_->ask_load(m, now_);
        if (what == 1) pool_->ask_sleep(m, now_);
        if (what == 2) pool_->ask_unload(m, now_);
      }
      break;
    default:
      ask(m);
    }
    settle();
  }

  void ask(std::size_t m) {
    switch (pool_->asked(m, now_)) {
    case verdict::send:
      ++under_way_[m];
      CHECK(pool_->now(m) == phase::awake);
      break;
    case verdict::wait:
      ++waiting_[m];
      break;
    case verdict::refuse:
      CHECK_FALSE(pool_->detail(m).empty());
      break;
    }
  }

  /// An order is reported as done, or as failed.
  void finish_one() {
    const std::size_t i = random_() % due_.size();
    const auto order = due_[i].order;
    due_.erase(due_.begin() + static_cast<std::ptrdiff_t>(i));
    const bool fails = random_() % 10 == 0;
    if (const auto* o = std::get_if<pool_state::open>(&order)) {
      if (random_() % 4 == 0 && pool_->now(o->model) == phase::opening) {
        pool_->fetching(o->model, now_);
        due_.push_back({order});
      } else if (fails) {
        pool_->open_failed(o->model, "open", now_);
      } else {
        pool_->opened(o->model, needs_[o->model], now_);
      }
    }
    if (const auto* l = std::get_if<pool_state::load>(&order))
      fails ? pool_->load_failed(l->model, "load", now_) : pool_->loaded(l->model, now_);
    if (const auto* l = std::get_if<pool_state::leave>(&order)) pool_->left(l->model, now_);
  }

  void settle() {
    for (const auto& order : take_orders(*pool_)) {
      if (const auto* s = std::get_if<pool_state::send_waiting>(&order))
        under_way_[s->model] += std::exchange(waiting_[s->model], 0);
      else if (const auto* r = std::get_if<pool_state::refuse_waiting>(&order))
        waiting_[r->model] = 0;
      else if (!std::holds_alternative<pool_state::close>(order))
        due_.push_back({order});
      if (const auto* l = std::get_if<pool_state::leave>(&order)) {
        CHECK(under_way_[l->model] == 0);
        if (rules_[l->model].pinned) CHECK(ordered_[l->model]);
      }
      if (const auto* l = std::get_if<pool_state::load>(&order)) {
        CHECK(l->grant > 0);
        CHECK(l->grant <= needs_[l->model]);
      }
    }
    CHECK(pool_->granted() <= budget_);
    int loading = 0;
    for (std::size_t m = 0; m < rules_.size(); ++m) {
      CHECK(static_cast<int>(pool_->waiting(m)) == waiting_[m]);
      CHECK(static_cast<int>(pool_->under_way(m)) == under_way_[m]);
      if (pool_->now(m) == phase::awake) CHECK(waiting_[m] == 0);
      loading += pool_->now(m) == phase::loading;
    }
    CHECK(loading <= 1);
  }

  std::mt19937 random_;
  bool with_orders_;
  std::int64_t budget_ = 0;
  std::vector<pool_state::model_rules> rules_;
  std::vector<std::int64_t> needs_;
  std::vector<bool> ordered_;
  std::vector<int> waiting_, under_way_;
  std::vector<due> due_;
  pool_state::time now_ = start;
  std::optional<pool_state> pool_;
};

} // namespace

TEST_CASE("the promises of a pool hold over random requests and faults", "[pool]") {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    world(seed, false).play(300);
  }
}

TEST_CASE("the promises of a pool hold with random orders of an administrator", "[pool]") {
  for (std::uint32_t seed = 1000; seed < 1300; ++seed) {
    INFO("seed " << seed);
    world(seed, true).play(300);
  }
}

TEST_CASE("no request waits for ever while others keep a model busy", "[pool]") {
  // Models 0 and 1 always have requests, in a budget for one model; then a request for 2 arrives.
  quick q({{}, {}, {}}, {10, 10, 10}, 10);
  int served = 0;
  q.ask(0);
  q.ask(2);
  for (int i = 0; i < 100 && served == 0; ++i) {
    q.pass(10ms);
    q.ask(i % 2);
    for (std::size_t m = 0; m < 3; ++m) {
      if (q.pool.under_way(m) == 0) continue;
      if (m == 2) ++served;
      q.end(m);
      if (m < 2) q.ask(m);
    }
  }
  CHECK(served == 1);
}
