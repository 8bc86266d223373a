// scheduled_sequence: a sequence as the scheduler sees it, in numbers of tokens and blocks only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "actors/scheduling/admission_policy.hpp"

namespace twill::actors {

struct alignas(64) scheduled_sequence {
  // The members that plans and results use are together in one cache line.
  priority_key key;
  std::int32_t prompt = 0;
  std::int32_t max_new = 0;
  std::int32_t delivered = 0; ///< output tokens whose step results have come back
  std::int32_t drawing = 0;   ///< tokens that outstanding steps will draw
  std::int32_t computed = 0; ///< positions whose KV is computed once the outstanding steps are done
  std::int32_t blocks = 0;   ///< blocks in its lease
  std::int32_t shared = 0;   ///< blocks of the lease that were shared when it began
  std::int32_t in_flight = 0; ///< rows of outstanding steps
  bool scored = false;        ///< each computed token needs a row of logits
  bool displaced = false;     ///< it was preempted to make room for another client's sequence
  bool paused = false;
  bool held = false;   ///< it waits for blocks from another tier
  bool opened = false; ///< the executor has a state for it
  bool leads = false;  ///< followers wait for the KV of its prompt

  /// `following`: the sequence is a further choice of a request, and waits until the first choice
  /// has computed the prompt.
  enum class place : std::uint8_t { following, waiting, running } where = place::waiting;
  enum class exit : std::uint8_t { none, preempted, gone } leaving = exit::none;

  sequence_id leader = 0; ///< the first choice of its request; 0: it is the first choice
  std::uint64_t client = 0;
  std::int32_t weight = 1; ///< of its client
  std::int32_t hint = -1;  ///< cached blocks found by its last look-up; -1: it was not looked up
  /// The lowest rank that the sequence may have in the queue. It is set for a sequence that lost
  /// its place in the running set to another client's sequence, behind which it is then queued.
  std::int64_t rank_in_queue = std::numeric_limits<std::int64_t>::min();

  std::int32_t known() const { return prompt + delivered + drawing; }
  std::int32_t remaining() const { return known() - computed; }
  bool schedulable() const {
    return !paused && leaving == exit::none && delivered + drawing < max_new && remaining() > 0;
  }
  /// Blocks that are freed when the sequence leaves, as far as the scheduler knows.
  std::int32_t own_blocks() const { return blocks - shared; }
};

/// Sequences in the order in which they are served.
using service_order = std::map<priority_key, scheduled_sequence*>;

/// The running set in the order of service, as a sorted vector: every plan iterates over it several
/// times, and few sequences enter or leave in one step.
class running_order {
public:
  using entry = std::pair<priority_key, scheduled_sequence*>;

  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  std::size_t size() const { return all_.size(); }
  bool empty() const { return all_.empty(); }
  void add(const priority_key& key, scheduled_sequence* s) { all_.insert(place(key), {key, s}); }
  void erase(const priority_key& key) {
    if (const auto at = place(key); at != all_.end() && at->first == key) all_.erase(at);
  }

private:
  std::vector<entry>::iterator place(const priority_key& key) {
    return std::lower_bound(all_.begin(), all_.end(), key,
                            [](const entry& e, const priority_key& k) { return e.first < k; });
  }
  std::vector<entry> all_;
};

} // namespace twill::actors
