// The scheduler on its own, and with a block pool under random operations.
#include <cstdlib>
#include <vector>

#include "tests/actors/kv/lease_blocks.hpp"
#include "tests/actors/scheduling/simulation.hpp"

using namespace scheduling_tests;

TEST_CASE("random operation sequences keep the scheduler's invariants and every request ends",
          "[actors][policy]") {
  totals sums;
  const int n_cases = std::getenv("TWILL_LONG") != nullptr ? 4000 : twill::test::cases_here(400);
  const auto n_seeds = static_cast<std::uint64_t>(n_cases);
  for (std::uint64_t seed = 1; seed <= n_seeds; ++seed)
    run_to_the_end(seed, nullptr, sums);
  CHECK(sums.preemptions > n_seeds / 8); // the small pools forced preemptions
  CHECK(sums.finished > 7 * n_seeds);
  CHECK(sums.hits > n_seeds);
  CHECK(sums.copied > n_seeds / 4);
}

TEST_CASE("a long prompt is cut into chunks and decodes go first", "[actors][policy]") {
  scheduler p({8, 4, 4});
  step_decision d;
  p.add({1, 0, 3, 10});
  p.plan(100, d);
  REQUIRE(d.rows.size() == 1);
  CHECK(d.rows[0].draws);
  p.add({2, 0, 20, 10});
  p.plan(100, d); // the first decode is planned before the prefill has a result
  REQUIRE(d.rows.size() == 2);
  CHECK(d.rows[0].id == 1);
  CHECK(d.rows[0].first_position == 3);
  CHECK(d.rows[0].n_tokens == 1);
  CHECK(d.rows[1].id == 2);
  CHECK(d.rows[1].n_tokens == 7);
  CHECK_FALSE(d.rows[1].draws);
  p.plan(100, d);
  CHECK(d.rows[1].first_position == 7);
  p.plan(100, d);
  CHECK(d.rows[1].n_tokens == 6);
  CHECK(d.rows[1].draws);
}

TEST_CASE("beside decodes prompts get no more than their share of a step", "[actors][policy]") {
  plan_limits limits{64, 4, 4};
  limits.mixed_prompt_tokens = 6;
  scheduler p(limits);
  step_decision d;
  p.add({1, 0, 30, 3});
  p.plan(100, d); // there is no decode, so the whole prompt is in one step
  REQUIRE(d.rows.size() == 1);
  CHECK(d.rows[0].n_tokens == 30);
  p.add({2, 0, 20, 2});
  p.add({3, 0, 9, 2});
  p.plan(100, d);
  REQUIRE(d.rows.size() == 2);
  CHECK(d.rows[0].n_tokens == 1);
  CHECK(d.rows[1].n_tokens == 6);
  p.plan(100, d); // the last token of sequence 1
  CHECK(d.rows[1].first_position == 6);
  CHECK(d.rows[1].n_tokens == 6);
  p.plan(100, d); // no sequence decodes any more
  REQUIRE(d.rows.size() == 2);
  CHECK(d.rows[0].n_tokens == 8);
  CHECK(d.rows[0].draws);
  CHECK(d.rows[1].n_tokens == 9);
}

TEST_CASE("an output limit known ahead is planned exactly", "[actors][policy]") {
  scheduler p({8, 4, 4});
  step_decision d;
  p.add({1, 0, 2, 2});
  p.plan(10, d);
  CHECK(d.rows.size() == 1);
  p.plan(10, d);
  CHECK(d.rows.size() == 1);
  p.plan(10, d);
  CHECK(d.rows.empty());
}

TEST_CASE("choices share the full blocks of their prompt", "[actors][policy]") {
  scheduler p({64, 8, 4});
  block_pool pool(32, 4);
  step_decision d;
  for (sequence_id id : {1, 2, 3})
    p.add({id, id == 1 ? sequence_id{0} : 1, 10, 4});
  p.plan(pool.free(), d);
  REQUIRE(d.rows.size() == 1);
  REQUIRE(d.forks.size() == 2);
  CHECK(d.forks[0].n_blocks == 2);
  std::vector<std::int32_t> ids;
  for (const auto& g : d.grows)
    REQUIRE(twill::test::grow(pool, g.id, g.n_blocks, ids));
  for (const auto& f : d.forks)
    REQUIRE(pool.fork(f.id, f.from, f.n_blocks));
  CHECK(pool.used() == 3);
  p.plan(pool.free(), d);
  REQUIRE(d.rows.size() == 3);
  CHECK(d.rows[1].first_position == 8);
  CHECK(d.rows[1].n_tokens == 2);
  for (const auto& g : d.grows)
    REQUIRE(twill::test::grow(pool, g.id, g.n_blocks, ids));
  CHECK(pool.used() == 5);
  pool.drop(1);
  CHECK(pool.used() == 4); // the two shared blocks are still in use
  pool.drop(2);
  pool.drop(3);
  CHECK(pool.free() == pool.total());
}

TEST_CASE("a paused sequence gives way before an active one", "[actors][policy]") {
  scheduler p({64, 8, 4});
  step_decision d;
  p.add({1, 0, 4, 20});
  p.add({2, 0, 4, 20});
  p.plan(4, d);
  REQUIRE(d.rows.size() == 2);
  p.row_done(1, true, true);
  p.row_done(2, true, true);
  p.pause(1);
  p.plan(0, d); // sequence 2 needs a block, none is free
  CHECK(d.rows.empty());
  CHECK(d.preempted == 1);
  std::vector<released_sequence> out;
  p.take_released(out);
  REQUIRE(out.size() == 1);
  CHECK(out[0].id == 1);
  CHECK_FALSE(out[0].gone);
}

TEST_CASE("a paused sequence that gives way leaves its client's place to the client's next",
          "[actors][policy]") {
  const bool device_is_lost = GENERATE(false, true);
  scheduler p({64, 1, 4});
  step_decision d;
  for (sequence_id id : {1, 2, 3}) {
    new_sequence one{id, 0, 4, 20};
    one.client = id == 3 ? 2 : 1;
    one.most_running = id == 3 ? 0 : 1;
    p.add(one);
  }
  p.plan(100, d);
  CHECK(d.opened == std::vector<sequence_id>{1});
  p.row_done(1, true, true);
  p.pause(1);
  if (device_is_lost) {
    p.forget_device();
  } else {
    p.plan(100, d);
    CHECK(d.preempted == 1);
  }
  p.plan(100, d);
  CHECK(d.opened == std::vector<sequence_id>{2});
}

TEST_CASE("the scheduler begins after a hit and leaves what it costs to nobody else",
          "[actors][policy]") {
  scheduler p({64, 8, 4, true});
  step_decision d;
  std::vector<sequence_id> ids_out;
  p.add({1, 0, 10, 4});
  p.add({2, 0, 10, 4});
  p.candidates(ids_out);
  CHECK(ids_out == std::vector<sequence_id>{1, 2});
  p.plan(4, d);
  CHECK(d.rows.empty()); // not admitted before a look-up
  const prefix_hit hits[] = {{1, 2, 2}, {2, 2, 0}};
  p.plan(4, d, hits); // 1: two evictable ones and a new one; 2: a new one, none left
  REQUIRE(d.rows.size() == 1);
  CHECK(d.reuses == std::vector<sequence_id>{1});
  CHECK(d.rows[0].first_position == 8);
  CHECK(d.rows[0].n_tokens == 2);
  CHECK(d.rows[0].draws);
  REQUIRE(d.grows.size() == 1);
  CHECK(d.grows[0].n_blocks == 1);
}

TEST_CASE("choices share their prompt also where output of the first one is cached behind it",
          "[actors][policy]") {
  plan_limits limits{64, 8, 4, true};
  limits.copies_blocks = GENERATE(false, true);
  scheduler p(limits);
  step_decision d;
  std::vector<sequence_id> ids_out;
  for (sequence_id id : {1, 2, 3}) {
    new_sequence choice{id, id == 1 ? sequence_id{0} : 1, 10, 20};
    choice.made = id == 1 ? 7 : id == 2 ? 3 : 0;
    p.add(choice);
  }
  p.candidates(ids_out);
  CHECK(ids_out == std::vector<sequence_id>{1});
  const prefix_hit hits[] = {{1, 4, 4}}; // 16 of its 17 tokens
  p.plan(100, d, hits);
  REQUIRE(d.rows.size() == 1);
  CHECK(d.rows[0].first_position == 16);
  CHECK(d.rows[0].draws);
  REQUIRE(d.forks.size() == 2);
  for (const lease_fork& f : d.forks) {
    CHECK(f.from == 1);
    CHECK(f.n_blocks == 2); // blocks of the prompt, without the first choice's output
  }
  CHECK(d.copies.size() == (limits.copies_blocks ? 2 : 0));
  const std::int32_t shared = limits.copies_blocks ? 9 : 8;
  p.plan(100, d);
  CHECK(d.forks.empty());
  REQUIRE(d.rows.size() == 3);
  CHECK(d.rows[0].first_position == 17);
  CHECK(d.rows[1].first_position == shared);
  CHECK(d.rows[1].n_tokens == 13 - shared);
  CHECK(d.rows[1].draws);
  CHECK(d.rows[2].n_tokens == 10 - shared);
}

TEST_CASE("a sequence that is preempted before its first draw keeps what an earlier run has drawn",
          "[actors][policy]") {
  scheduler p({64, 8, 4});
  step_decision d;
  std::vector<released_sequence> out;
  p.add({1, 0, 4, 20});
  new_sequence second{2, 0, 4, 6};
  second.made = 4;
  p.add(second);
  p.plan(5, d);
  REQUIRE(d.rows.size() == 2);
  CHECK(d.rows[1].n_tokens == 8);
  p.plan(0, d); // sequence 1 needs a block, and none is free
  CHECK(d.preempted == 1);
  p.row_done(1, true, true);
  p.row_done(2, true, true);
  p.take_released(out);
  REQUIRE(out.size() == 1);
  CHECK(out[0].id == 2);
  p.plan(10, d);
  REQUIRE(d.rows.size() == 2);
  CHECK(d.rows[1].first_position == 0);
  CHECK(d.rows[1].n_tokens == 9);
  p.row_done(1, true, true);
  p.row_done(2, true, true);
  p.plan(10, d);
  REQUIRE(d.rows.size() == 1); // six tokens are drawn, with four of the earlier run
  CHECK(d.rows[0].id == 1);
}

namespace {

/// Serves in the order of arrival, and logs all calls.
class noting_policy final : public admission_policy {
public:
  explicit noting_policy(std::vector<std::string>& received, bool shares = false)
      : received_(received), shares_(shares) {}
  std::int64_t rank_of(const new_sequence& arrived) override {
    return static_cast<std::int64_t>(10 * arrived.id);
  }
  void on_admitted(sequence_id id) override { note("admitted", id); }
  void on_left(sequence_id id, std::int32_t output_tokens) override {
    note("left with " + std::to_string(output_tokens), id);
  }
  void on_resumed(sequence_id id) override { note("resumed", id); }
  bool shares_running_set() const override { return shares_; }

private:
  void note(const std::string& what, sequence_id id) {
    received_.push_back(what + ": " + std::to_string(id));
  }
  std::vector<std::string>& received_;
  bool shares_;
};

} // namespace

TEST_CASE("a policy's callbacks report admitted, resumed and departed sequences",
          "[actors][policy]") {
  std::vector<std::string> received;
  const auto since = [&received] { return std::exchange(received, {}); };
  scheduler s({64, 1, 4}, std::make_unique<noting_policy>(received));
  step_decision d;
  s.add({1, 0, 4, 20});
  s.add({2, 0, 4, 20});
  s.add({3, 0, 4, 20});
  CHECK(since().empty());
  s.plan(100, d);
  CHECK(since() == std::vector<std::string>{"admitted: 1"});
  s.row_done(1, true, true);
  s.pause(2);
  s.pause(2);
  CHECK(since().empty());
  s.resume(2);
  s.resume(2);
  CHECK(since() == std::vector<std::string>{"resumed: 2"});
  s.leave(3);
  CHECK(since() == std::vector<std::string>{"left with 0: 3"});
  s.leave(1);
  CHECK(since() == std::vector<std::string>{"left with 1: 1"});
  s.plan(100, d);
  CHECK(since() == std::vector<std::string>{"admitted: 2"});
}

TEST_CASE("who gives up a place comes behind the one that takes it", "[actors][policy]") {
  std::vector<std::string> received;
  scheduler s({64, 3, 4}, std::make_unique<noting_policy>(received, true));
  step_decision d;
  std::vector<released_sequence> released;
  const auto step = [&] {
    s.plan(1000, d);
    for (const planned_row& row : d.rows)
      s.row_done(row.id, row.draws, row.draws);
    s.take_released(released);
  };
  for (sequence_id id = 1; id <= 5; ++id) {
    new_sequence one{id, 0, 4, 100};
    one.client = id == 4 ? 2 : 1;
    s.add(one);
  }
  step();
  CHECK(d.opened == std::vector<sequence_id>{1, 2, 3});
  for (int i = 0; i < 3 && released.empty(); ++i)
    step();
  REQUIRE(released.size() == 1); // the third is preempted, although it came before the fourth
  CHECK(released[0].id == 3);
  step();
  CHECK(s.is_running(4));
  CHECK_FALSE(s.is_running(3));
  s.leave(4);
  step();
  step();
  CHECK(s.is_running(3)); // the third runs again, before the fifth
}
