// Turns between clients: the stated bound on what one gets more than another, the order within one
// client, newcomers, and places in the running set.
#include "actors/scheduling/fair_policy.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "tests/actors/scheduling/simulation.hpp"

using namespace scheduling_tests;

namespace {

new_sequence of(std::uint64_t client, sequence_id id, std::int32_t prompt,
                std::int32_t max_new = 1) {
  new_sequence s{id, 0, prompt, max_new};
  s.client = client;
  return s;
}

/// A queue in the policy's order; each admission takes a prompt and leaves at once.
class queue {
public:
  void arrive(std::uint64_t client, std::int32_t prompt) {
    const new_sequence s = of(client, next_++, prompt);
    waiting_[{policy.rank_of(s), s.id}] = s;
    n_waiting[client] += 1;
  }
  new_sequence admit() {
    const new_sequence s = waiting_.begin()->second;
    waiting_.erase(waiting_.begin());
    n_waiting[s.client] -= 1;
    admitted[s.client] += s.prompt_tokens + 1;
    policy.on_admitted(s.id);
    policy.on_left(s.id, 1);
    return s;
  }
  bool empty() const { return waiting_.empty(); }

  fair_policy policy;
  std::map<std::uint64_t, int> n_waiting;
  std::map<std::uint64_t, std::int64_t> admitted; ///< tokens

private:
  std::map<priority_key, new_sequence> waiting_;
  sequence_id next_ = 1;
};

} // namespace

TEST_CASE("clients that wait get equal tokens, up to what two sequences cost") {
  constexpr std::int32_t longest = 900;
  std::mt19937 random(5);
  const auto any = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  for (int round = 0; round < 40; ++round) {
    queue q;
    std::map<std::pair<int, int>, std::int64_t> base; // of pairs that both wait: their difference
    for (int op = 0; op < 600; ++op) {
      const int client = any(1, 4);
      // Client 1 asks for much, the others for less and less.
      if (any(0, 2) > 0) q.arrive(static_cast<std::uint64_t>(client), any(1, longest / client));
      if (any(0, 1) == 0 && !q.empty()) q.admit();
      for (int a = 1; a <= 4; ++a) {
        for (int b = a + 1; b <= 4; ++b) {
          const std::int64_t difference =
              q.admitted[static_cast<std::uint64_t>(a)] - q.admitted[static_cast<std::uint64_t>(b)];
          if (q.n_waiting[static_cast<std::uint64_t>(a)] == 0 ||
              q.n_waiting[static_cast<std::uint64_t>(b)] == 0) {
            base.erase({a, b});
            continue;
          }
          const auto began = base.try_emplace({a, b}, difference).first->second;
          REQUIRE(std::abs(difference - began) <= 2 * (longest + 1));
        }
      }
    }
    while (!q.empty())
      q.admit();
    // A client is remembered only while it is ahead of the others.
    CHECK(q.policy.clients() <= 4);
  }
}

TEST_CASE("the sequences of one client keep their order") {
  fair_policy policy;
  std::int64_t last = 0;
  std::mt19937 random(7);
  for (sequence_id id = 1; id < 500; ++id) {
    const std::int64_t rank = policy.rank_of(of(3, id, 1 + static_cast<int>(random() % 500), 100));
    CHECK(rank >= last);
    last = rank;
    if (random() % 3 == 0) policy.on_admitted(id);
    if (random() % 3 == 0) policy.on_left(id, static_cast<std::int32_t>(random() % 100));
  }
}

TEST_CASE("a client with one request is served after one of another's three hundred") {
  queue q;
  for (int i = 0; i < 300; ++i)
    q.arrive(1, 100);
  for (int i = 0; i < 20; ++i)
    q.admit();
  q.arrive(2, 100);
  q.admit();
  if (q.n_waiting[2] > 0) q.admit();
  CHECK(q.n_waiting[2] == 0);
}

TEST_CASE("newcomers do not overtake for ever") {
  queue q;
  for (int i = 0; i < 3; ++i)
    q.arrive(1, 100);
  int admitted = 0;
  for (std::uint64_t newcomer = 10; q.n_waiting[1] > 0; ++newcomer) {
    q.arrive(newcomer, 100);
    q.arrive(newcomer + 1'000'000, 100); // twice as many as there is room for
    q.admit();
    REQUIRE(++admitted < 60);
  }
}

TEST_CASE("a client that was away has saved up no turns, and a long output is charged") {
  queue q;
  for (int i = 0; i < 100; ++i) {
    q.arrive(1, 100);
    q.admit();
  }
  for (int i = 0; i < 10; ++i) {
    q.arrive(1, 100);
    q.arrive(2, 100);
  }
  for (int i = 0; i < 10; ++i)
    q.admit();
  CHECK(q.n_waiting[1] >= 4);
  CHECK(q.n_waiting[2] >= 4);

  fair_policy policy;
  policy.rank_of(of(1, 1, 10, 5000));
  policy.rank_of(of(2, 2, 10, 5000));
  policy.on_admitted(1);
  policy.on_admitted(2);
  policy.on_left(1, 5000);
  policy.on_left(2, 1);
  CHECK(policy.rank_of(of(1, 3, 10, 10)) > policy.rank_of(of(2, 4, 10, 10)));
}

TEST_CASE("a client without a running sequence takes a place of one that runs many") {
  scheduler s({64, 3, 4}, std::make_unique<fair_policy>());
  step_decision d;
  std::vector<released_sequence> released;
  const auto step = [&] {
    s.plan(1000, d);
    for (const planned_row& row : d.rows)
      s.row_done(row.id, row.draws, row.draws);
    s.take_released(released);
  };
  for (sequence_id id = 1; id <= 5; ++id)
    s.add(of(1, id, 4, 100));
  step();
  CHECK(d.opened == std::vector<sequence_id>{1, 2, 3});
  step();
  CHECK(d.preempted == 0); // nobody else is there
  s.add(of(2, 6, 4, 100));
  step();
  CHECK(d.preempted == 1);
  REQUIRE(released.size() == 1);
  CHECK(released[0].id == 3);
  CHECK_FALSE(released[0].gone);
  step();
  CHECK(d.opened == std::vector<sequence_id>{6});
  s.add(of(2, 7, 4, 100));
  for (int i = 0; i < 5; ++i)
    step();
  CHECK(s.is_running(1));
  CHECK(s.is_running(2)); // two and one are fair shares of three
  CHECK_FALSE(s.is_running(7));
  s.leave(6);
  step();
  step();
  CHECK(s.is_running(7));
  s.leave(7);
  step();
  step();
  CHECK(s.is_running(3)); // it goes on before its client's later ones
  CHECK_FALSE(s.is_running(4));
  // It made room once and does not have to again.
  s.leave(1);
  s.leave(2);
  s.add(of(3, 8, 4, 100));
  for (int i = 0; i < 8; ++i)
    step();
  CHECK(s.is_running(3));
  CHECK(s.is_running(8));
}

TEST_CASE("invariants hold and every request ends while clients take turns") {
  totals sums;
  for (std::uint64_t seed = 1; seed <= 200; ++seed)
    run_to_the_end(seed, nullptr, sums, true);
  CHECK(sums.preemptions > 50);
  CHECK(sums.finished > 1000);
}
