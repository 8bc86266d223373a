// pool_state decides which of several models have their weights in memory. It makes the same
// decisions as the reference plain_pool for every sequence of inputs, and its tables are empty at
// the end.
#include "actors/pool/pool_state.hpp"

#include <chrono>
#include <string>
#include <variant>
#include <vector>

#include "tests/actors/pool/plain_pool.hpp"
#include "tests/catch.hpp"
#include "tests/support/operations.hpp"

using namespace twill::actors;
using namespace twill::test;
using namespace std::chrono_literals;
using phase = pool_state::phase;
using verdict = pool_state::verdict;

namespace {

std::string written(const pool_state::order& order) {
  const auto of = [](const char* what, std::size_t m) {
    return std::string(what) + " " + std::to_string(m);
  };
  if (const auto* o = std::get_if<pool_state::open>(&order)) return of("open", o->model);
  if (const auto* o = std::get_if<pool_state::leave>(&order)) return of("leave", o->model);
  if (const auto* o = std::get_if<pool_state::close>(&order)) return of("close", o->model);
  if (const auto* o = std::get_if<pool_state::send_waiting>(&order)) return of("send", o->model);
  if (const auto* o = std::get_if<pool_state::refuse_waiting>(&order))
    return of("refuse", o->model);
  const auto& load = std::get<pool_state::load>(order);
  return of(("load " + std::to_string(load.grant) + " for").c_str(), load.model);
}

/// Passes the same inputs to pool_state and plain_pool, and compares their answers.
class both {
public:
  both(std::vector<pool_state::model_rules> rules, const pool_state::limits& bounds)
      : pool_(rules, bounds), twin_(rules, bounds), budget_(bounds.budget) {
    tell([&](auto& one) { one.begin(now_); });
  }

  void apply(const operation& op) {
    // Often no time passes, so that events happen at equal times.
    now_ += 1s * (op.c % 16 < 8 ? 0 : op.c % 16 - 7);
    if (const auto at = pool_.wake_at(); at && *at <= now_ && op.c % 3 > 0)
      tell([&](auto& one) { one.woken(now_); });
    const std::size_t m = op.a % pool_.size();
    switch (op.kind % 16) {
    case 0:
    case 1:
    case 2:
    case 3:
      ask(m);
      break;
    case 4:
    case 5:
      tell([&](auto& one) { one.ended(m, now_); });
      break;
    case 6:
      tell([&](auto& one) { one.gave_up(m, now_); });
      break;
    case 7:
      tell([&](auto& one) { one.ask_load(m, now_); });
      break;
    case 8:
      tell([&](auto& one) { one.ask_sleep(m, now_); });
      break;
    case 9:
      tell([&](auto& one) { one.ask_unload(m, now_); });
      break;
    case 10:
      tell([&](auto& one) { one.woken(now_); });
      break;
    case 11: // a report of any kind, even if no order asked for it
      report(m, op.b % 6, op.b / 6);
      break;
    default:
      finish(op.a, op.b);
    }
  }

  /// Ends all requests and carries out all orders, then puts every model to sleep.
  void end() {
    for (int round = 0; round < 200; ++round) {
      if (const auto at = pool_.wake_at()) now_ = std::max(now_, *at);
      tell([&](auto& one) { one.woken(now_); });
      for (std::size_t m = 0; m < pool_.size(); ++m) {
        while (pool_.under_way(m) > 0)
          tell([&](auto& one) { one.ended(m, now_); });
        finish(0, 38);
      }
    }
    for (std::size_t m = 0; m < pool_.size(); ++m) {
      demand_equal(pool_.waiting(m), 0U, "requests that wait at the end");
      tell([&](auto& one) { one.ask_unload(m, now_); });
      finish(0, 38);
    }
    demand_equal(pool_.granted(), 0, "memory that models have at the end");
    demand(pool_.begun(), "every model has begun");
    demand(!pool_.wake_at(), "nothing is left to wake for");
  }

private:
  template <class F>
  void tell(F&& fact) {
    fact(pool_);
    fact(twin_);
    compare();
  }

  void ask(std::size_t m) {
    const auto answer = pool_.asked(m, now_), expected = twin_.asked(m, now_);
    demand_equal(static_cast<int>(answer), static_cast<int>(expected), "the verdict");
    if (answer == verdict::refuse) demand(!pool_.detail(m).empty(), "a refusal says why");
    compare();
  }

  /// An event that a model waits for happens; in five of six cases it is a success.
  void finish(std::uint32_t which, std::uint32_t how) {
    std::vector<std::size_t> waits;
    for (std::size_t m = 0; m < pool_.size(); ++m)
      if (const auto what = pool_.now(m); what == phase::opening || what == phase::fetching ||
                                          what == phase::loading || what == phase::leaving)
        waits.push_back(m);
    if (waits.empty()) return;
    const std::size_t m = waits[which % waits.size()];
    const bool well = how % 6 > 0;
    switch (pool_.now(m)) {
    case phase::opening:
      report(m, how % 12 == 1 ? 0 : well ? 1 : 2, how / 12);
      break;
    case phase::fetching:
      report(m, well ? 1 : 2, how / 12);
      break;
    case phase::loading:
      report(m, well ? 3 : 4, 0);
      break;
    default:
      report(m, 5, 0);
    }
  }

  void report(std::size_t m, std::uint32_t what, std::uint32_t need) {
    const std::int64_t bytes = need % 32 == 31 ? -1 : static_cast<std::int64_t>(need % 8);
    tell([&](auto& one) {
      switch (what) {
      case 0:
        return one.fetching(m, now_);
      case 1:
        return one.opened(m, bytes, now_);
      case 2:
        return one.open_failed(m, "files", now_);
      case 3:
        return one.loaded(m, now_);
      case 4:
        return one.load_failed(m, "memory", now_);
      default:
        return one.left(m, now_);
      }
    });
  }

  void compare() {
    std::string is, expected;
    for (; pool_.next_order() != nullptr; pool_.drop_order())
      is += written(*pool_.next_order()) + "; ";
    for (const auto& order : twin_.orders)
      expected += order + "; ";
    twin_.orders.clear();
    demand(is == expected, "the orders are \"" + is + "\", expected \"" + expected + "\"");
    demand(pool_.wake_at() == twin_.wake_at, "the time to wake is the twin's");
    demand_equal(pool_.begun(), twin_.begun(), "begun");
    demand_equal(pool_.granted(), twin_.granted(), "the sum of grants");
    demand(pool_.granted() <= budget_, "the grants are within the budget");
    for (std::size_t m = 0; m < pool_.size(); ++m) {
      const auto& one = twin_.models[m];
      const std::string of = " of model " + std::to_string(m);
      demand_equal(static_cast<int>(pool_.now(m)), static_cast<int>(one.state), "the phase" + of);
      demand_equal(pool_.need(m), one.need, "the need" + of);
      demand_equal(pool_.grant(m), one.grant, "the grant" + of);
      demand_equal(pool_.under_way(m), one.under_way, "what is under way" + of);
      demand_equal(pool_.waiting(m), one.waiting, "what waits" + of);
      const bool tells = !one.why.empty() || one.state == phase::fetching;
      demand_equal(!pool_.detail(m).empty(), tells, "whether there is a detail" + of);
      if (one.state == phase::awake) demand(one.waiting == 0, "nobody waits for an awake model");
      if (!one.why.empty() && one.why != "no room")
        demand(pool_.detail(m).find(one.why) != std::string::npos, "the detail" + of);
    }
  }

  pool_state pool_;
  plain_pool twin_;
  std::int64_t budget_;
  pool_state::time now_{1h};
};

/// The first operation says which models there are.
void play(const operations& sequence) {
  if (sequence.empty()) return;
  const operation& setup = sequence.front();
  std::vector<pool_state::model_rules> rules(
      setup.kind % 8 == 0 ? 1 : 2 + setup.kind % 8 / 4 + setup.kind % 8 / 7);
  for (std::size_t m = 0; m < rules.size(); ++m) {
    rules[m].pinned = setup.a >> (3 * m) & 1 & (setup.a >> (3 * m + 1));
    rules[m].keep_alive = 1s * (setup.b >> (3 * m) & 4 ? setup.b >> (3 * m) & 3 : 0);
  }
  both world(rules, {static_cast<std::int64_t>(setup.c % 12), 1s, 1s * (1 + setup.c / 12 % 6)});
  for (std::size_t i = 1; i < sequence.size(); ++i)
    world.apply(sequence[i]);
  world.end();
}

} // namespace

TEST_CASE("which models have memory is decided as by a plain list of them", "[pool]") {
  CHECK(first_failure({.cases = 6000, .long_cases = 200'000, .most_operations = 150}, play) == "");
}
