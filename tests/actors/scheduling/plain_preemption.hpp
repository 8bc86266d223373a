// A sequence as the plain scheduler (plain_scheduler.hpp) stores it, and the rules by which running
// sequences are preempted and lose their blocks or their places in the running set.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "actors/scheduling/admission_policy.hpp"

namespace scheduling_tests {

using namespace twill::actors;

struct plain_sequence {
  new_sequence of;
  std::int64_t rank = 0;
  enum { follows, waits, runs } place = waits;
  enum { stays, gives_way, gone } exit = stays;
  bool paused = false, held = false, opened = false, displaced = false;
  std::int64_t delivered = 0, drawing = 0, computed = 0, blocks = 0, shared = 0, in_flight = 0;
  std::int64_t cached = -1; ///< blocks of the last hit; -1: it was not looked up
  std::int64_t rank_after_displacement = std::numeric_limits<std::int64_t>::min();

  priority_key key() const { return {rank, of.id}; }
  std::int64_t known() const { return of.prompt_tokens + delivered + drawing; }
  std::int64_t remaining() const { return known() - computed; }
  std::int64_t own_blocks() const { return blocks - shared; }
  bool may_have_a_row() const {
    return place == runs && exit == stays && !paused && delivered + drawing < of.max_new;
  }
  bool holds_while_waiting() const { return place == waits && blocks > 0; }
};

struct plain_shortage {
  std::int64_t decode_blocks = 0, head_blocks = 0;
  std::optional<priority_key> first_starved, head;
  bool running_set_full = false;
};

inline bool served_before(const plain_sequence* a, const plain_sequence* b) {
  return a->key() < b->key();
}

/// The sequences to preempt, in order, so that the blocks or the place in the running set that the
/// last plan lacked become free. `all` are all sequences, in any order.
inline std::vector<plain_sequence*> who_gives_way(std::vector<plain_sequence*> all,
                                                  const plain_shortage& lacks) {
  std::sort(all.rbegin(), all.rend(), served_before); // the sequence that is served last comes
                                                      // first
  if (lacks.running_set_full) {
    // A place comes free anyway where one is leaving. Else the paused one served last makes room.
    for (const plain_sequence* s : all)
      if (s->place == plain_sequence::runs && s->exit != plain_sequence::stays) return {};
    for (plain_sequence* s : all)
      if (s->place == plain_sequence::runs && s->paused) return {s};
    return {};
  }
  std::int64_t need = std::max(lacks.decode_blocks, lacks.head_blocks);
  if (need == 0) return {};
  std::vector<plain_sequence*> paused, later, chosen;
  for (plain_sequence* s : all) {
    const bool runs = s->place == plain_sequence::runs;
    if (!runs && !s->holds_while_waiting()) continue;
    if (runs && s->exit != plain_sequence::stays)
      need -= s->own_blocks(); // the blocks of a sequence that leaves come free
    else if (s->paused)
      paused.push_back(s);
    else if (lacks.decode_blocks > 0 && s->key() >= *lacks.first_starved)
      later.push_back(s);
    else if (lacks.decode_blocks == 0 && !runs && s->key() > *lacks.head)
      later.push_back(s); // a running sequence is not preempted for a waiting one
  }
  for (const auto& group : {paused, later})
    for (plain_sequence* s : group) {
      if (need <= 0) return chosen;
      need -= s->own_blocks();
      chosen.push_back(s);
    }
  return chosen;
}

} // namespace scheduling_tests
