// stats_board holds the counters, gauges and histograms of an engine. It counts each observation in
// the histogram bucket that a search through all bounds finds. The length of an actor's mailbox and
// the token counts of a tenant equal plain sums of all changes that were reported.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "actors/detail/mailbox_depths.hpp"
#include "actors/detail/stats_board.hpp"
#include "tests/catch.hpp"
#include "tests/support/operations.hpp"

using namespace twill::actors;
using namespace twill::test;
using namespace std::chrono_literals;

namespace {

void play_histogram(const operations& sequence) {
  histogram h{{0.5, 1, 2, 4}, {0, 0, 0, 0, 0}, 0};
  std::vector<double> all;
  for (const operation& op : sequence) {
    const double value = op.a % 10 / 2.0; // often equal to a bound of a bucket
    observe(h, value, op.b % 3);
    all.insert(all.end(), op.b % 3, value);
    double sum = 0;
    for (const double one : all)
      sum += one;
    demand_equal(h.sum, sum, "the sum");
    for (std::size_t i = 0; i < h.counts.size(); ++i) {
      const auto n = std::count_if(all.begin(), all.end(), [&](double one) {
        return (i == 0 || one > h.bounds[i - 1]) && (i == h.bounds.size() || one <= h.bounds[i]);
      });
      demand_equal(h.counts[i], static_cast<std::uint64_t>(n), "what lies below a bound");
    }
  }
}

void play_board(const operations& sequence) {
  stats_board board;
  mailbox_depths depths;
  std::map<std::pair<std::string, std::string>, std::uint64_t> tenants;
  std::vector<std::int64_t> waiting(actor_kind_names.size());
  std::int64_t reserved = 0, untouched = 0;
  for (const operation& op : sequence) {
    const std::string tenant(1, static_cast<char>('a' + op.a % 3));
    const std::string model(1, static_cast<char>('m' + op.b % 2));
    const auto kind = op.a % waiting.size();
    switch (op.kind % 4) {
    case 0:
      board.update_tenant(tenant, model, [&](tenant_stats& one) { one.prompt_tokens += op.c % 9; });
      tenants[{tenant, model}] += op.c % 9;
      break;
    case 1:
      reserved = op.a % 8;
      board.update([&](engine_stats& s) { s.device_memory_reserved_bytes = reserved; });
      break;
    case 2:
      untouched = op.a % 8;
      board.set_untouched_bytes([untouched] { return untouched; });
      break;
    default: {
      const std::int64_t by = op.b % 2 == 0 ? 1 + op.c % 3 : -waiting[kind];
      depths.add(static_cast<actor_kind>(kind), by);
      waiting[kind] += by;
    }
    }
    const auto stats = board.read();
    demand_equal(stats.device_memory_reserved_bytes, reserved, "what is reserved");
    demand_equal(stats.device_memory_touched_bytes, std::max<std::int64_t>(reserved - untouched, 0),
                 "what was touched");
    const auto entries = board.read_tenants();
    demand_equal(entries.size(), tenants.size(), "the number of entries of tenants");
    for (const tenant_stats& one : entries)
      demand_equal(one.prompt_tokens, tenants.at({one.tenant, one.model}), "a tenant's tokens");
    for (std::size_t i = 0; i < waiting.size(); ++i)
      demand_equal(depths.depth(i), waiting[i], "the depth of a mailbox");
    const std::chrono::steady_clock::time_point now{1h + 1ms * op.c}, sent{1h};
    board.watch_steps_from(sent);
    demand(board.step_age(now) == now - sent, "the age of a step");
    board.watch_steps_from({});
    demand(board.step_age(now) == 0s, "no step is outstanding");
  }
}

} // namespace

TEST_CASE("an observation is counted below the first bound that is not less") {
  CHECK(first_failure({.cases = 300, .long_cases = 20'000}, play_histogram) == "");
}

TEST_CASE("the board has the sums of all that was reported to it") {
  CHECK(first_failure({.cases = 300, .long_cases = 20'000}, play_board) == "");
}
