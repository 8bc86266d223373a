// fair_policy: clients take turns by tokens, in proportion to their weights; the requests of one
// client are served by priority, and in the order of their arrival where that is equal.
//
// Pure; one thread at a time. It is start-time fair queueing over a virtual time in tokens: a
// sequence is ranked behind what its client was ranked for before, and never before the virtual
// time, so that nobody saves up turns while away. What a sequence is charged, divided by its
// client's weight, is the distance to the client's next one. The virtual time advances by the
// tokens of each sequence that ends, divided by the weights of the clients that are there, so that
// newcomers cannot overtake for ever; and it is never before the position of a client that is
// served: the rank of its next sequence, less the charges of those that run. So nobody pays later
// for places that nobody else wanted. A sequence that comes with a lower priority
// takes the rank of the first one that it passes, and those that it passes move back by its charge;
// when one that waits is cancelled, its client's later ones move forward by its charge.
//
// The bound: while two clients both have sequences waiting, the tokens that they are admitted for,
// each divided by the client's weight, differ by at most C / weight of the one + C / weight of the
// other + R. C is the largest charge; R is what a client can have in hand when the second of the
// two comes: the charges of its running sequences and of one more, by its weight, for the client
// where that is most (tests/actors/scheduling/fair_policy_test.cpp). Nobody waits for a share that
// its owner does not use: ranks only say who comes first. How long an output will be is guessed
// from the client's last ones and corrected when it is known.
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
  /// Turns that passed while it was paused are not made up for.
  void on_resumed(sequence_id id) override;
  void take_moved(std::vector<moved_sequence>& out) override;
  bool shares_running_set() const override { return true; }
  void account(ledger& to, const holder_names& name) const override;

  std::size_t clients() const { return clients_.size(); }

private:
  /// Ranks are in parts of tokens, so that a virtual time shared by many clients still advances,
  /// and so that the largest weight divides the smallest charge.
  static constexpr std::int64_t parts = 1 << 16;
  /// Output tokens that are expected of an unknown client.
  static constexpr std::int32_t first_guess = 128;

  using order_in_client = std::pair<std::int32_t, sequence_id>; ///< priority, then arrival
  struct turn {
    std::int64_t rank = 0;
    std::int64_t reported = 0; ///< the rank that the scheduler knows
    std::int64_t step = 0;     ///< to the client's next turn: the charge by weight
  };
  struct client {
    std::int64_t finish = 0; ///< where its next sequence is ranked at the earliest
    std::int64_t last = 0;   ///< the rank of its last sequence
    std::int64_t weight = 1;
    std::int64_t running = 0;                   ///< the steps of its sequences that run
    std::int64_t expected_output = first_guess; ///< moving average of its outputs
    std::int32_t live = 0;                      ///< sequences that wait or run
    std::map<order_in_client, turn> queue;      ///< those that were never admitted
  };
  struct entry {
    std::uint64_t client = 0;
    std::int64_t charged = 0;        ///< tokens
    std::int64_t charged_output = 0; ///< of these, for the output
    std::int64_t step = 0;           ///< the charge by weight
    std::int32_t priority = 0;
    bool waiting = true;
  };

  static std::int64_t charged_output(const client& c, const new_sequence& arrived);
  void cancel(std::uint64_t name, client& c, const order_in_client& who);

  std::int64_t virtual_time_ = 0;
  std::int64_t active_weight_ = 0; ///< of the clients with live sequences
  std::unordered_map<std::uint64_t, client> clients_;
  std::unordered_map<sequence_id, entry> entries_;
  std::set<std::pair<std::int64_t, std::uint64_t>> away_; ///< finish of clients without
  std::unordered_set<std::uint64_t> moved_; ///< clients some of whose ranks are not told yet
};

} // namespace twill::actors
