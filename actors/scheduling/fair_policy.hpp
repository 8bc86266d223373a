// fair_policy: clients take turns by tokens, in proportion to their weights. The requests of one
// client are served by priority, and those of equal priority in the order of their arrival.
//
// An object has no side effects outside itself; one thread at a time may use it. The algorithm is
// start-time fair queueing over a virtual time that is counted in tokens.
//
// Ranks: an arriving sequence is ranked behind all earlier sequences of its client, and never
// before the virtual time, so that a client cannot save up turns while it is away. A sequence's
// charge divided by its client's weight is the distance to the client's next rank.
//
// Virtual time: it advances by the tokens of each sequence that ends, divided by the total weight
// of the clients that are present, so that newcomers cannot overtake for ever. It is also never
// before the position of a client that is being served, which is the rank of the client's next
// sequence less the charges of its running sequences. So a client does not pay later for places
// that no other client wanted.
//
// Changes of rank: a sequence that arrives with a lower priority value takes the rank of the first
// sequence that it passes, and the ranks of the sequences that it passes rise by its charge divided
// by the weight. When a waiting sequence is cancelled, the ranks of the client's later sequences
// fall by as much.
//
// The bound: while two clients both have sequences waiting, the tokens for which each of them is
// admitted, divided by the client's weight, differ by at most C / weight of the first + C / weight
// of the second + R. C is the largest charge. R stands for work that has been charged but is not
// done yet at the moment when the second of the two clients arrives: for each client, the charges
// of its running sequences plus C, divided by its weight, are at most R
// (tests/actors/scheduling/fair_policy_test.cpp).
//
// No client waits for a share that its owner does not use, since ranks only order the sequences
// that are there. The length of an output is guessed from the client's last outputs and corrected
// when it is known.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "actors/scheduling/admission_policy.hpp"

namespace twill::actors {

class fair_policy final : public admission_policy {
public:
  std::int64_t rank_of(const new_sequence& arrived) override;
  void on_admitted(sequence_id id) override;
  void on_left(sequence_id id, std::int32_t output_tokens) override;
  /// Turns that passed while the sequence was paused are not made up for.
  void on_resumed(sequence_id id) override;
  void take_moved(std::vector<moved_sequence>& out) override;
  bool shares_running_set() const override { return true; }
  void account(ledger& to, const holder_names& name) const override;

  std::size_t clients() const { return clients_.size(); }

private:
  /// Ranks are counted in fractions of a token, so that the virtual time still advances when many
  /// clients share it, and so that a charge divided by the largest weight is not zero.
  static constexpr std::int64_t parts = 1 << 16;
  /// Output tokens expected of a client that has no outputs yet.
  static constexpr std::int32_t first_guess = 128;

  using order_in_client = std::pair<std::int32_t, sequence_id>; ///< priority, then arrival
  struct turn {
    std::int64_t rank = 0;
    std::int64_t reported = 0; ///< the rank that was last reported to the scheduler
    std::int64_t step = 0;     ///< distance to the client's next turn: charge divided by weight
  };
  struct client {
    std::int64_t finish = 0; ///< the earliest rank of its next sequence
    std::int64_t last = 0;   ///< the rank of its last sequence
    std::int64_t weight = 1;
    std::int64_t running = 0;                   ///< sum of `step` over its running sequences
    std::int64_t expected_output = first_guess; ///< moving average of its outputs
    std::int32_t live = 0;                      ///< number of sequences that wait or run
    std::map<order_in_client, turn> queue;      ///< sequences that were never admitted
  };
  struct entry {
    std::uint64_t client = 0;
    std::int64_t charged = 0;        ///< tokens
    std::int64_t charged_output = 0; ///< the part of the charge that is for the output
    std::int64_t step = 0;           ///< charge divided by weight
    std::int32_t priority = 0;
    bool waiting = true;
  };

  static std::int64_t charged_output(const client& c, const new_sequence& arrived);
  void cancel(std::uint64_t name, client& c, const order_in_client& who);

  std::int64_t virtual_time_ = 0;
  std::int64_t active_weight_ = 0; ///< total weight of the clients with live sequences
  std::unordered_map<std::uint64_t, client> clients_;
  std::unordered_map<sequence_id, entry> entries_;
  /// (finish, client) of the clients without live sequences
  std::set<std::pair<std::int64_t, std::uint64_t>> away_;
  /// clients with changed ranks that take_moved() has not reported yet
  std::unordered_set<std::uint64_t> moved_;
};

} // namespace twill::actors
