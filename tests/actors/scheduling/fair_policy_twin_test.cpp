// Every rank (a sequence's place in the order of service) that the fair policy gives equals that of
// a plain reference over random operations, including operations that are rare in the scheduler.
// The rules for ranks in the policy's header hold, and the policy keeps nothing of clients that
// have left.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "actors/scheduling/fair_policy.hpp"
#include "tests/actors/scheduling/plain_fair_policy.hpp"
#include "tests/actors/scheduling/scheduler_fixture.hpp"
#include "tests/catch.hpp"

using namespace scheduling_tests;
using twill::test::demand;
using twill::test::demand_equal;
using twill::test::operation;
using twill::test::operations;

namespace {

class policy_fixture {
public:
  void apply(const operation& o) {
    const std::uint32_t kind = o.kind % 16;
    if (kind < 6)
      arrive(choices(o.a), choices(o.b));
    else if (kind < 10)
      on_any(o.a, [&](sequence_id id) { admit(id); });
    else if (kind < 13)
      on_any(o.a, [&](sequence_id id) { leave(id, choices(o.b)); });
    else if (kind == 13)
      on_any(o.a, [&](sequence_id id) { resume(id); });
    else if (kind == 14)
      take_moved();
    else
      weights_[o.a % 3 + 1] = weight_of(choices(o.b));
    demand_equal(real_.clients(), twin_.clients(), "how many clients are remembered");
  }
  void leave_all() {
    while (!live_.empty())
      leave(live_.begin()->first, choices(0));
  }
  /// Time passes until no client that has left is ahead, so that the policy remembers no client.
  void demand_empty() {
    take_moved();
    constexpr std::uint64_t nobody_else = 99;
    new_sequence longest;
    longest.id = next_id_++;
    longest.prompt_tokens = 1;
    longest.client = nobody_else;
    longest.max_new = 1;
    real_.rank_of(longest);
    twin_.rank_of(longest);
    real_.on_admitted(longest.id);
    twin_.on_admitted(longest.id);
    real_.on_left(longest.id, 1 << 28);
    twin_.on_left(longest.id, 1 << 28);
    demand_equal(real_.clients(), std::size_t{0}, "how many clients are remembered in the end");
  }
  /// The ranks that the policy gives from now on, less the first of them.
  std::vector<std::int64_t> next_ranks(const operations& sequence) {
    ranks_.clear();
    for (const operation& o : sequence)
      apply(o);
    auto ranks = ranks_;
    for (std::int64_t& rank : ranks)
      rank -= ranks_.front();
    return ranks;
  }
  void forget_weights() { weights_.clear(); }
  int n_moved = 0;

private:
  struct facts {
    new_sequence of;
    std::int64_t rank = 0;
    bool waits = true;
  };

  static std::int32_t weight_of(choices any) {
    return any.one_in(6) ? any.between(0, 1000) : any.between(1, 5);
  }

  template <class F>
  void on_any(std::uint32_t which, F&& apply) {
    if (which % 16 == 15) return apply(next_id_ + 5); // there is no such sequence
    if (live_.empty()) return;
    apply(std::next(live_.begin(), static_cast<std::ptrdiff_t>(which / 16 % live_.size()))->first);
  }
  void arrive(choices sizes, choices kinds) {
    new_sequence s;
    s.id = next_id_++;
    s.client = static_cast<std::uint64_t>(kinds.between(1, 3));
    s.priority = kinds.between(-1, 1);
    s.leader = kinds.one_in(4) ? 1 : 0;
    s.weight = weights_.try_emplace(s.client, 1).first->second;
    s.prompt_tokens = sizes.one_in(4) ? sizes.between(1, 3000) : sizes.between(1, 20);
    s.max_new = sizes.one_in(2) ? sizes.between(1, 4) : sizes.between(100, 300);
    s.made = kinds.one_in(3) ? s.max_new - 1 : 0;
    const std::int64_t rank = real_.rank_of(s);
    demand_equal(rank, twin_.rank_of(s), "the rank of an arrival");
    live_[s.id] = {s, rank};
    ranks_.push_back(rank);
  }
  void admit(sequence_id id) {
    real_.on_admitted(id);
    twin_.on_admitted(id);
    if (const auto found = live_.find(id); found != live_.end()) found->second.waits = false;
  }
  void leave(sequence_id id, choices any) {
    const std::int32_t output = any.one_in(2) ? any.between(0, 400) : any.between(0, 3);
    real_.on_left(id, output);
    twin_.on_left(id, output);
    live_.erase(id);
  }
  void resume(sequence_id id) {
    real_.on_resumed(id);
    twin_.on_resumed(id);
  }
  void take_moved() {
    std::vector<moved_sequence> moved, expected;
    real_.take_moved(moved);
    twin_.take_moved(expected);
    const auto by_id = [](const auto& a, const auto& b) { return a.id < b.id; };
    std::sort(moved.begin(), moved.end(), by_id); // clients come in any order
    demand_equal(moved.size(), expected.size(), "how many have moved");
    for (std::size_t i = 0; i < moved.size(); ++i) {
      demand_equal(moved[i].id, expected[i].id, "who has moved");
      demand_equal(moved[i].rank, expected[i].rank, "where one has moved");
      demand(live_.at(moved[i].id).waits, "one has moved that was admitted");
      live_.at(moved[i].id).rank = moved[i].rank;
      ranks_.push_back(moved[i].rank);
      ++n_moved;
    }
    demand_priorities();
  }
  /// One client's sequences that were never admitted are served by priority, then by arrival.
  void demand_priorities() const {
    for (const auto& [a, first] : live_)
      for (const auto& [b, second] : live_) {
        if (first.of.client != second.of.client || !first.waits || !second.waits) continue;
        if (std::pair(first.of.priority, a) < std::pair(second.of.priority, b))
          demand(std::pair(first.rank, a) < std::pair(second.rank, b),
                 "sequence " + std::to_string(b) + " is before " + std::to_string(a) +
                     " of the same client");
      }
  }

  fair_policy real_;
  plain_fair_policy twin_;
  std::map<sequence_id, facts> live_;
  std::map<std::uint64_t, std::int32_t> weights_;
  std::vector<std::int64_t> ranks_;
  sequence_id next_id_ = 1;
};

} // namespace

TEST_CASE("a fair policy ranks as its plain twin does, and forgets whoever has left",
          "[scheduling]") {
  int moved = 0;
  const auto failure = twill::test::first_failure({3000, 200'000, 120}, [&](const operations& ops) {
    policy_fixture fixture, fresh;
    fixture.next_ranks(ops);
    fixture.leave_all();
    fixture.demand_empty();
    fixture.forget_weights();
    demand(fixture.next_ranks(ops) == fresh.next_ranks(ops),
           "a policy that all have left ranks otherwise than a new one");
    moved += fixture.n_moved;
  });
  CHECK(failure == "");
  CHECK(moved > 50);
}
