// fair_policy: clients take turns by tokens; the requests of one client are served in the order of
// their arrival.
//
// Pure; one thread at a time. It is start-time fair queueing over a virtual time in tokens: a
// sequence is ranked behind what its client was ranked for before, and never before the virtual
// time, so that nobody saves up turns while away. The virtual time advances by the tokens of each
// sequence that ends, divided by the clients that are there, so that newcomers cannot overtake for
// ever. While two clients both have sequences waiting, the tokens that they were admitted for
// differ by at most what two sequences cost (tests/actors/scheduling/fair_policy_test.cpp). How
// long an output will be is guessed from the client's last ones and corrected when it is known.
#pragma once

#include <cstdint>
#include <set>
#include <unordered_map>
#include <utility>

#include "actors/scheduling/admission_policy.hpp"

namespace twill::actors {

class fair_policy final : public admission_policy {
public:
  std::int64_t rank_of(const new_sequence& arrived) override;
  void on_admitted(sequence_id id) override;
  void on_left(sequence_id id, std::int32_t output_tokens) override;
  bool shares_running_set() const override { return true; }

  /// What a sequence of the client would be charged now, in tokens.
  std::int64_t charge(const new_sequence& arrived) const;
  std::size_t clients() const { return clients_.size(); }

private:
  /// Ranks are in parts of tokens, so that a virtual time shared by many clients still advances.
  static constexpr std::int64_t parts = 1024;
  /// Output tokens that are expected of an unknown client.
  static constexpr std::int32_t first_guess = 128;

  struct client {
    std::int64_t finish = 0; ///< where its next sequence is ranked at the earliest
    std::int64_t last = 0;   ///< the rank of its last sequence
    std::int64_t expected_output = first_guess; ///< moving average of its outputs
    std::int32_t waiting = 0;                   ///< sequences that were never admitted
    std::int32_t live = 0;                      ///< sequences that wait or run
  };
  struct entry {
    std::uint64_t client = 0;
    std::int64_t charged = 0;        ///< tokens
    std::int64_t charged_output = 0; ///< of these, for the output
    bool waiting = true;
  };

  std::int64_t virtual_time_ = 0;
  std::int64_t n_active_ = 0; ///< clients with live sequences
  std::unordered_map<std::uint64_t, client> clients_;
  std::unordered_map<sequence_id, entry> entries_;
  std::set<std::pair<std::int64_t, std::uint64_t>> away_; ///< finish of clients without
};

} // namespace twill::actors
