// admission_policy: determines the order in which sequences are served. The scheduler asks the
// policy for a rank when a sequence arrives. The ranks decide which sequence is admitted next,
// whose prompt is computed first, and which sequences keep their blocks when blocks run out. A
// policy may later change the ranks of sequences that were never admitted (take_moved). A sequence
// that was preempted to make room for another client's sequence is queued directly behind that
// sequence.
//
// Pure: a policy may remember the sequences that it has ranked, but reads no clock and draws no
// random numbers. One thread at a time. The more later arrivals a policy may rank before an earlier
// sequence, the longer that sequence may wait; first come first served ranks no later arrival
// before an earlier one.
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
  /// the sequence of the first choice (output) of the same request, which was added before; 0: this
  /// sequence is the first choice
  sequence_id leader = 0;
  std::int32_t prompt_tokens = 0; ///< at least 1
  std::int32_t max_new = 0;       ///< the most output tokens; at least 1
  bool scored = false;            ///< each of its prompt tokens needs a row of logits
  std::uint64_t client = 0;       ///< the client of its request
  std::int32_t weight = 1;        ///< weight of its client
  /// the most sequences of its client that may run at once; 0: no limit of its own
  std::int32_t most_running = 0;
  std::int32_t priority = 0; ///< among the sequences of its client, a lower value is served earlier
  std::int32_t made = 0;     ///< output tokens that an earlier run has drawn; fewer than max_new
};

/// A sequence whose rank has changed.
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

/// Maps a sequence to the name under which a ledger lists it as a holder.
using holder_names = std::function<std::string(sequence_id)>;

class admission_policy {
public:
  virtual ~admission_policy() = default;
  /// The rank of an arriving sequence; a smaller rank is served earlier.
  virtual std::int64_t rank_of(const new_sequence& arrived) = 0;
  /// The sequence enters the running set. Called again after each preemption.
  virtual void on_admitted(sequence_id) {}
  /// The sequence has left for good, after `output_tokens` tokens of output.
  virtual void on_left(sequence_id, std::int32_t /*output_tokens*/) {}
  /// A waiting sequence was paused because its client read slowly, and is now resumed.
  virtual void on_resumed(sequence_id) {}
  /// Appends the never admitted sequences whose ranks have changed since the last call.
  virtual void take_moved(std::vector<moved_sequence>& /*out*/) {}
  /// Whether a client with fewer running sequences may take places in the running set from a client
  /// with more of them (see preemption.hpp).
  virtual bool shares_running_set() const { return false; }
  /// Adds what the policy counts for its sequences to the ledger.
  virtual void account(ledger&, const holder_names&) const {}
};

/// First come first served: all ranks are equal, so the order of arrival decides.
class fcfs_policy final : public admission_policy {
public:
  std::int64_t rank_of(const new_sequence&) override { return 0; }
};

} // namespace twill::actors
