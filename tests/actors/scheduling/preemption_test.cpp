// The sequences that choose_preempted() picks are those that the reference plain_preemption.hpp
// picks, for any running set and any shortage of blocks.
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "actors/scheduling/preemption.hpp"
#include "tests/actors/scheduling/plain_preemption.hpp"
#include "tests/actors/scheduling/scheduler_fixture.hpp"
#include "tests/catch.hpp"

using namespace scheduling_tests;
using twill::test::operation;
using twill::test::operations;

namespace {

/// A sequence that runs, or waits with a lease that was forked.
plain_sequence any_sequence(sequence_id id, const operation& o) {
  choices kinds(o.a), sizes(o.b);
  plain_sequence s;
  s.of.id = id;
  s.rank = sizes.between(0, 3);
  s.place = kinds.one_in(3) ? plain_sequence::waits : plain_sequence::runs;
  s.paused = kinds.one_in(3);
  s.blocks = sizes.between(0, 4);
  s.shared = std::min<std::int64_t>(sizes.between(0, 2), s.blocks);
  if (s.place == plain_sequence::runs && kinds.one_in(5))
    s.exit = kinds.one_in(2) ? plain_sequence::gone : plain_sequence::gives_way;
  return s;
}

scheduled_sequence scheduled(const plain_sequence& s) {
  scheduled_sequence one;
  one.key = s.key();
  one.paused = s.paused;
  one.blocks = static_cast<std::int32_t>(s.blocks);
  one.shared = static_cast<std::int32_t>(s.shared);
  one.where = s.place == plain_sequence::runs ? scheduled_sequence::place::running
                                              : scheduled_sequence::place::waiting;
  one.leaving = s.exit == plain_sequence::gone        ? scheduled_sequence::exit::gone
                : s.exit == plain_sequence::gives_way ? scheduled_sequence::exit::preempted
                                                      : scheduled_sequence::exit::none;
  return one;
}

/// Decodes that starve, a head without blocks, a full running set, or nothing.
plain_shortage any_shortage(const operation& o) {
  choices any(o.c);
  plain_shortage lacks;
  const priority_key key{any.between(0, 3), static_cast<sequence_id>(any.between(0, 9))};
  switch (any.of(4)) {
  case 0:
    lacks.decode_blocks = any.between(1, 6);
    lacks.first_starved = key;
    break;
  case 1:
    lacks.head_blocks = any.between(1, 6);
    lacks.head = key;
    break;
  case 2:
    lacks.running_set_full = true;
    break;
  default:
    break;
  }
  return lacks;
}

} // namespace

TEST_CASE("those give way whom the plain rules name", "[scheduling]") {
  const auto failure = twill::test::first_failure({10'000, 500'000, 12}, [](const operations& ops) {
    if (ops.empty()) return;
    std::deque<plain_sequence> plain;
    std::deque<scheduled_sequence> all;
    running_order running;
    service_order waiting;
    std::vector<plain_sequence*> everyone;
    for (const operation& o : ops) {
      everyone.push_back(&plain.emplace_back(any_sequence(plain.size() + 1, o)));
      scheduled_sequence& s = all.emplace_back(scheduled(plain.back()));
      if (s.where == scheduled_sequence::place::running)
        running.add(s.key, &s);
      else
        waiting.emplace(s.key, &s);
    }
    const plain_shortage plain_lacks = any_shortage(ops.front());
    shortage lacks;
    lacks.decode_blocks = plain_lacks.decode_blocks;
    lacks.head_blocks = plain_lacks.head_blocks;
    lacks.first_starved = plain_lacks.first_starved;
    lacks.head = plain_lacks.head.value_or(priority_key{});
    lacks.running_set_full = plain_lacks.running_set_full;
    std::vector<sequence_id> chosen, expected;
    for (const scheduled_sequence* s : choose_preempted(lacks, running, waiting))
      chosen.push_back(s->key.id);
    for (const plain_sequence* s : who_gives_way(everyone, plain_lacks))
      expected.push_back(s->of.id);
    demand_same(written(chosen), written(expected), "who gives way");
  });
  CHECK(failure == "");
}
