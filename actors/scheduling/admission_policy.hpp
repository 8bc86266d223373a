// admission_policy: in which order sequences are served. The scheduler asks for the rank of each
// sequence when it arrives, and keeps to that order whenever it chooses: who is admitted next,
// whose prompt is computed first, who keeps its blocks when blocks run out. A policy may move
// sequences that were never admitted (take_moved). One that had to make room for another client's
// moves right behind that one.
//
// Pure: a policy may remember the sequences that it has ranked, but reads no clock and draws no
// random numbers. One thread at a time. A policy bounds waiting by how many later arrivals it ranks
// before an earlier one; first come first served ranks none.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "actors/scheduling/step_decision.hpp"
#include "config/base/ledger.hpp"

namespace twill::actors {

/// A sequence as it arrives.
struct new_sequence {
  sequence_id id = 0;
  sequence_id leader = 0; ///< the first choice of the same request, added before; 0: this one is it
  std::int32_t prompt_tokens = 0; ///< at least 1
  std::int32_t max_new = 0;       ///< output tokens at most; at least 1
  bool scored = false;            ///< each of its prompt tokens takes a row of logits
  std::uint64_t client = 0;       ///< whose request it is
  std::int32_t weight = 1;        ///< of its client
  std::int32_t most_running = 0;  ///< of its client's sequences at once; 0: no limit of its own
  std::int32_t priority = 0;      ///< within its client; a lower one is served earlier
  std::int32_t made = 0;          ///< output tokens of an earlier run; fewer than max_new
};

/// A sequence that has another rank now.
struct moved_sequence {
  sequence_id id = 0;
  std::int64_t rank = 0;
};

/// A sequence's place in the order of service; the smallest key is served first. Sequences of equal
/// rank are served in the order of their arrival.
struct priority_key {
  std::int64_t rank = 0;
  sequence_id id = 0;
  auto operator<=>(const priority_key&) const = default;
};

/// What a ledger calls the holder of what a sequence has.
using holder_names = std::function<std::string(sequence_id)>;

class admission_policy {
public:
  virtual ~admission_policy() = default;
  /// The rank of an arriving sequence; a smaller rank is served earlier.
  virtual std::int64_t rank_of(const new_sequence& arrived) = 0;
  /// The sequence enters the running set; said again after a preemption.
  virtual void on_admitted(sequence_id) {}
  /// The sequence has left for good, with so many tokens of output.
  virtual void on_left(sequence_id, std::int32_t /*output_tokens*/) {}
  /// A sequence that waits is served again, after its reader was slow.
  virtual void on_resumed(sequence_id) {}
  /// Appends the sequences that were never admitted and whose ranks have changed since they were
  /// last told.
  virtual void take_moved(std::vector<moved_sequence>& /*out*/) {}
  /// Whether a client that runs fewer sequences may take places of one that runs more (see
  /// preemption.hpp).
  virtual bool shares_running_set() const { return false; }
  /// Adds what it counts for the sequences that it knows.
  virtual void account(ledger&, const holder_names&) const {}
};

/// First come first served: all ranks are equal, so that arrival decides.
class fcfs_policy final : public admission_policy {
public:
  std::int64_t rank_of(const new_sequence&) override { return 0; }
};

} // namespace twill::actors
