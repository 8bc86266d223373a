// Fair sharing between clients: the guaranteed bound on how many more tokens one client gets than
// another, the order within one client, new clients, and which clients' sequences run at the same
// time.
#include "actors/scheduling/fair_policy.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "tests/actors/scheduling/simulation.hpp"

using namespace scheduling_tests;

namespace {

new_sequence of(std::uint64_t client, sequence_id id, std::int32_t prompt, std::int32_t max_new = 1,
                std::int32_t weight = 1, std::int32_t priority = 0) {
  new_sequence s{id, 0, prompt, max_new};
  s.client = client;
  s.weight = weight;
  s.priority = priority;
  return s;
}

/// The waiting sequences in the order that the fair policy gives them. An admitted sequence either
/// leaves at once, or runs until the test ends it or it is preempted.
class queue {
public:
  sequence_id arrive(std::uint64_t client, std::int32_t prompt, std::int32_t weight = 1,
                     std::int32_t priority = 0) {
    const new_sequence s = of(client, next_++, prompt, 1, weight, priority);
    keys_[s.id] = {policy.rank_of(s), s.id};
    waiting_[keys_[s.id]] = s;
    n_waiting[client] += 1;
    apply_moves();
    return s.id;
  }
  new_sequence admit(bool runs_on = false) {
    auto first = waiting_.begin();
    while (at_its_limit(first->second.client) && std::next(first) != waiting_.end())
      ++first;
    const new_sequence s = first->second;
    waiting_.erase(first);
    policy.on_admitted(s.id);
    if (ran_.insert(s.id).second) {
      n_waiting[s.client] -= 1;
      admitted[s.client] += s.prompt_tokens + 1;
      in_hand[s.client] += (s.prompt_tokens + 1.0) / s.weight;
    }
    running_.push_back(s);
    if (!runs_on) end(running_.size() - 1);
    return s;
  }
  void end(std::size_t i) {
    const new_sequence s = running_.at(i);
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
    leave(s);
    apply_moves();
  }
  void preempt(std::size_t i) {
    const new_sequence s = running_.at(i);
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
    waiting_[keys_.at(s.id)] = s;
  }
  void cancel(std::size_t i) {
    const auto at = std::next(waiting_.begin(), static_cast<std::ptrdiff_t>(i));
    const new_sequence s = at->second;
    waiting_.erase(at);
    if (ran_.count(s.id) == 0) n_waiting[s.client] -= 1;
    leave(s);
    apply_moves();
  }
  /// Takes all waiting sequences of a client out of the queue until resume().
  void pause(std::uint64_t client) {
    for (auto at = waiting_.begin(); at != waiting_.end();)
      if (at->second.client == client) {
        paused_.push_back(at->second);
        at = waiting_.erase(at);
      } else {
        ++at;
      }
  }
  void resume() {
    for (const new_sequence& s : paused_)
      waiting_[keys_.at(s.id)] = s;
    for (const new_sequence& s : std::exchange(paused_, {}))
      policy.on_resumed(s.id);
    apply_moves();
  }
  bool empty() const { return waiting_.empty(); }
  std::size_t size() const { return waiting_.size(); }
  std::size_t running() const { return running_.size(); }

  fair_policy policy;
  std::uint64_t limited = 0; ///< this client is passed over while one of its sequences runs
  std::map<std::uint64_t, int> n_waiting;         ///< without sequences that ran before
  std::map<std::uint64_t, std::int64_t> admitted; ///< tokens
  /// For sequences that ran and have not left: the sum of their tokens, divided by their weights.
  std::map<std::uint64_t, double> in_hand;

private:
  bool at_its_limit(std::uint64_t client) const {
    return client == limited && std::any_of(running_.begin(), running_.end(),
                                            [&](const auto& s) { return s.client == client; });
  }
  void leave(const new_sequence& s) {
    const bool ran = ran_.count(s.id) > 0;
    if (ran) in_hand[s.client] -= (s.prompt_tokens + 1.0) / s.weight;
    policy.on_left(s.id, ran ? 1 : 0);
  }
  void apply_moves() {
    std::vector<moved_sequence> moved;
    policy.take_moved(moved);
    for (const moved_sequence& m : moved) {
      auto node = waiting_.extract(keys_.at(m.id));
      REQUIRE(!node.empty());
      node.key().rank = keys_.at(m.id).rank = m.rank;
      waiting_.insert(std::move(node));
    }
  }

  std::map<priority_key, new_sequence> waiting_;
  std::map<sequence_id, priority_key> keys_;
  std::set<sequence_id> ran_;
  std::vector<new_sequence> running_, paused_;
  sequence_id next_ = 1;
};

} // namespace

TEST_CASE("clients that wait get tokens by weight, within the stated bound") {
  constexpr std::int32_t longest = 900;
  std::mt19937 random(5);
  const auto any = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  const auto index_in = [&](std::size_t n) {
    return static_cast<std::size_t>(any(0, static_cast<int>(n) - 1));
  };
  std::int64_t compared = 0;
  for (int round = 0; round < 120; ++round) {
    queue q;
    // Some rounds with equal weights, some with preemptions, some with priorities.
    std::map<int, int> weight;
    for (int client = 1; client <= 4; ++client)
      weight[client] = round % 3 == 0 ? 1 : any(1, 12);
    const bool runs_on = round % 2 == 0;
    if (round % 5 < 2) q.limited = 4; // a client at its own limit must not delay others
    struct beginning {
      double difference, in_hand;
    };
    std::map<std::pair<int, int>, beginning> base; // for pairs of clients that both wait
    for (int op = 0; op < 600; ++op) {
      const int client = any(1, 4);
      // Client 1 asks for many tokens, and each further client for fewer.
      if (any(0, 2) > 0)
        q.arrive(static_cast<std::uint64_t>(client), any(1, longest / client), weight[client],
                 round % 4 == 1 ? any(-2, 2) : 0);
      if (any(0, 1) == 0 && !q.empty()) q.admit(runs_on);
      if (any(0, 9) == 0 && !q.empty()) q.cancel(index_in(q.size()));
      if (any(0, 9) == 0 && q.running() > 0) q.preempt(index_in(q.running()));
      while (q.running() > 8 || (q.running() > 0 && any(0, 2) == 0))
        q.end(index_in(q.running()));
      for (int a = 1; a <= 4; ++a) {
        for (int b = a + 1; b <= 4; ++b) {
          const auto served = [&](int c) {
            return static_cast<double>(q.admitted[static_cast<std::uint64_t>(c)]) / weight[c];
          };
          const double difference = served(a) - served(b);
          if (q.limited == static_cast<std::uint64_t>(b)) continue;
          if (q.n_waiting[static_cast<std::uint64_t>(a)] == 0 ||
              q.n_waiting[static_cast<std::uint64_t>(b)] == 0) {
            base.erase({a, b});
            continue;
          }
          double in_hand = 0;
          for (const auto& [c, tokens] : q.in_hand)
            in_hand = std::max(in_hand, tokens + (longest + 1.0) / weight[static_cast<int>(c)]);
          const beginning began =
              base.try_emplace({a, b}, beginning{difference, in_hand}).first->second;
          const double bound =
              (longest + 1.0) / weight[a] + (longest + 1.0) / weight[b] + began.in_hand;
          ++compared;
          REQUIRE(std::abs(difference - began.difference) <= bound + 0.5);
        }
      }
    }
    while (!q.empty())
      q.admit();
    while (q.running() > 0)
      q.end(0);
    // A client is remembered only while it is ahead of the others.
    CHECK(q.policy.clients() <= 4);
  }
  CHECK(compared > 50000);
}

TEST_CASE("a client of weight 3 gets three times the tokens of one of weight 1") {
  queue q;
  for (int i = 0; i < 400; ++i) {
    q.arrive(1, 100, 1);
    q.arrive(2, 100, 3);
  }
  for (int i = 0; i < 400; ++i)
    q.admit();
  CHECK(q.admitted[2] >= 2.9 * static_cast<double>(q.admitted[1]));
  CHECK(q.admitted[2] <= 3.1 * static_cast<double>(q.admitted[1]));
}

TEST_CASE("a newcomer overtakes no more than its share, also beside clients that only run") {
  queue q;
  for (std::uint64_t client = 10; client < 20; ++client) {
    q.arrive(client, 100);
    q.admit(true); // these sequences run on, and their clients ask for nothing more
  }
  for (int i = 0; i < 100; ++i)
    q.arrive(1, 100);
  for (int i = 0; i < 50; ++i)
    q.admit();
  for (int i = 0; i < 50; ++i)
    q.arrive(2, 100);
  const auto before = q.admitted[1];
  for (int i = 0; i < 20; ++i)
    q.admit();
  CHECK(q.admitted[1] - before >= 9 * 101);
}

TEST_CASE("a client that is behind by its own limit lets no newcomer overtake the others") {
  queue q;
  q.limited = 9;
  for (int i = 0; i < 50; ++i) {
    q.arrive(9, 100);
    q.arrive(1, 100);
    q.arrive(1, 100);
  }
  q.admit(true); // the sequence of client 9 runs on
  for (int i = 0; i < 60; ++i)
    q.admit();
  for (int i = 0; i < 30; ++i)
    q.arrive(2, 100);
  const auto before = q.admitted[1];
  for (int i = 0; i < 20; ++i)
    q.admit();
  CHECK(q.n_waiting[9] == 49);
  CHECK(q.admitted[1] - before >= 9 * 101);
}

TEST_CASE("lower priorities of one client come first, and others do not pay for it") {
  queue q;
  std::vector<sequence_id> patient, urgent;
  for (int i = 0; i < 20; ++i) {
    patient.push_back(q.arrive(1, 100, 1, 5));
    q.arrive(2, 100);
  }
  // Long ones, so that taking the short ones' turns would be a gain.
  for (int i = 0; i < 5; ++i)
    urgent.push_back(q.arrive(1, 400, 1, -1));
  std::vector<sequence_id> order;
  while (!q.empty()) {
    const new_sequence s = q.admit();
    if (s.client == 1) order.push_back(s.id);
    if (q.n_waiting[2] > 0) REQUIRE(std::abs(q.admitted[1] - q.admitted[2]) <= 401 + 401);
  }
  urgent.insert(urgent.end(), patient.begin(), patient.end());
  CHECK(order == urgent);
}

TEST_CASE("priorities decide also after one that waits was cancelled") {
  fair_policy policy;
  std::map<sequence_id, std::int64_t> ranks;
  const auto arrive = [&](sequence_id id, std::int32_t max_new, std::int32_t priority) {
    ranks[id] = policy.rank_of(of(1, id, 1, max_new, 1, priority));
  };
  arrive(1, 100, 0);
  policy.on_admitted(1);
  arrive(2, 1, 0);
  policy.on_left(1, 0); // returns a charge of 100 tokens, so the next sequence gets an earlier rank
  arrive(3, 1, 1);
  CHECK(ranks[3] == ranks[2]);
  arrive(4, 1, 0);
  policy.on_left(2, 0);
  std::vector<moved_sequence> moved;
  policy.take_moved(moved);
  for (const moved_sequence& m : moved)
    ranks[m.id] = m.rank;
  CHECK(ranks[4] < ranks[3]);
}

TEST_CASE("what a client cancels while it waits costs it no turns") {
  queue q;
  for (int i = 0; i < 20; ++i)
    q.arrive(1, 100);
  for (int i = 0; i < 20; ++i)
    q.arrive(2, 100);
  for (int i = 0; i < 15; ++i)
    q.cancel(q.size() > 30 ? 2 : 0); // the clients alternate in the order of service
  const auto waiting = std::min(q.n_waiting[1], q.n_waiting[2]);
  for (int i = 0; i < 2 * (waiting - 1); ++i)
    q.admit();
  CHECK(std::abs(q.admitted[1] - q.admitted[2]) <= 202);
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
    q.arrive(newcomer + 1'000'000, 100); // twice as many arrivals as there are places
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

TEST_CASE("a client that was paused takes its turns from then on, no more and no fewer") {
  queue q;
  for (int i = 0; i < 200; ++i)
    q.arrive(1, 100);
  for (int i = 0; i < 10; ++i)
    q.arrive(2, 100);
  q.pause(2);
  for (int i = 0; i < 50; ++i)
    q.admit();
  q.resume();
  for (int i = 0; i < 10; ++i) // more sequences, behind those of client 2 that wait
    q.arrive(2, 100);
  sequence_id last = 0;
  for (int i = 0; i < 24; ++i) {
    const new_sequence s = q.admit();
    if (s.client != 2) continue;
    CHECK(s.id > last);
    last = s.id;
  }
  CHECK(q.n_waiting[2] >= 7);
  CHECK(q.n_waiting[2] <= 9);
}

namespace {
/// A scheduler with the fair policy, 64 tokens a step and enough blocks for all sequences, and an
/// executor that draws every planned token.
struct stepping {
  explicit stepping(std::int32_t max_running)
      : s({64, max_running, 4}, std::make_unique<fair_policy>()) {}
  void step() {
    s.plan(1000, d);
    for (const planned_row& row : d.rows)
      s.row_done(row.id, row.draws, row.draws);
    s.take_released(released);
  }

  scheduler s;
  step_decision d;
  std::vector<released_sequence> released;
};
} // namespace

TEST_CASE("a place of many is taken by weight") {
  // Another client runs four sequences, which is the limit. The first waiting sequence (the head)
  // preempts one of them if, after that, the other client still runs at least as many sequences for
  // its weight as the head's client: 3 / weight_of_others >= 1 / weight_of_head.
  struct {
    std::int32_t weight_of_head, weight_of_others;
    bool takes;
  } const cases[] = {{1, 2, true}, {1, 3, true},  {1, 4, false}, {2, 6, true},
                     {2, 4, true}, {2, 7, false}, {3, 1, true}};
  for (const auto& one : cases) {
    INFO(one.weight_of_head << " beside " << one.weight_of_others);
    stepping b(4);
    for (sequence_id id = 1; id <= 4; ++id)
      b.s.add(of(1, id, 4, 100, one.weight_of_others));
    b.step();
    b.s.add(of(2, 5, 4, 100, one.weight_of_head));
    b.step();
    CHECK(b.d.preempted == (one.takes ? 1 : 0));
  }
}

TEST_CASE("a client without a running sequence takes a place of one that runs many") {
  stepping b(3);
  scheduler& s = b.s;
  const step_decision& d = b.d;
  const auto step = [&b] { b.step(); };
  for (sequence_id id = 1; id <= 5; ++id)
    s.add(of(1, id, 4, 100));
  step();
  CHECK(d.opened == std::vector<sequence_id>{1, 2, 3});
  step();
  CHECK(d.preempted == 0); // no other client waits
  s.add(of(2, 6, 4, 100));
  step();
  CHECK(d.preempted == 1);
  REQUIRE(b.released.size() == 1);
  CHECK(b.released[0].id == 3);
  CHECK_FALSE(b.released[0].gone);
  step();
  CHECK(d.opened == std::vector<sequence_id>{6});
  s.add(of(2, 7, 4, 100));
  for (int i = 0; i < 5; ++i)
    step();
  CHECK(s.is_running(1));
  CHECK(s.is_running(2)); // of three places, two and one are fair shares
  CHECK_FALSE(s.is_running(7));
  s.leave(6);
  step();
  step();
  CHECK(s.is_running(7));
  s.leave(7);
  step();
  step();
  CHECK(s.is_running(3)); // it runs before its client's later sequences
  CHECK_FALSE(s.is_running(4));
  // Sequence 3 was preempted once and is not preempted again.
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
  const auto n_seeds = static_cast<std::uint64_t>(twill::test::cases_here(200));
  for (std::uint64_t seed = 1; seed <= n_seeds; ++seed)
    run_to_the_end(seed, nullptr, sums, true);
  CHECK(sums.preemptions > n_seeds / 4);
  CHECK(sums.finished > 5 * n_seeds);
}

TEST_CASE("a client's new weight counts from its next sequence on, also while it never leaves",
          "[scheduling]") {
  queue q;
  for (int i = 0; i < 40; ++i) {
    q.arrive(1, 9);
    q.arrive(2, 9);
  }
  for (int i = 0; i < 300; ++i) {
    q.arrive(1, 9, 3);
    q.arrive(2, 9);
  }
  for (int i = 0; i < 80; ++i)
    q.admit();
  q.admitted.clear();
  for (int i = 0; i < 200; ++i)
    q.admit();
  CHECK(q.admitted[1] > 2.5 * q.admitted[2]);
  CHECK(q.admitted[1] < 3.5 * q.admitted[2]);
}

TEST_CASE("output of an earlier run is charged when its sequence arrives", "[actors][policy]") {
  fair_policy policy;
  const auto next_rank = [&](std::uint64_t client, std::int32_t made) {
    new_sequence s = of(client, 10 * client, 10, 2000);
    s.made = made;
    const auto first = policy.rank_of(s);
    return policy.rank_of(of(client, 10 * client + 1, 10, 2000)) - first;
  };
  const auto fresh = next_rank(1, 0);
  CHECK(next_rank(2, 3) == fresh); // fewer tokens than are expected anyway
  CHECK(next_rank(3, 1990) > fresh);
}
