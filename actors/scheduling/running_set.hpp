// running_set: the running sequences in the order of service, and each client's part of them.
//
// An object has no side effects outside itself; one thread at a time may use it. Sequences belong
// to the scheduler; the running set has pointers to them, so a running sequence must neither move
// nor change its priority_key (its place in the order of service).
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "actors/scheduling/scheduled_sequence.hpp"

namespace twill::actors {

class running_set {
public:
  /// A client's part of the running set.
  struct share {
    std::int32_t running = 0;
    std::int32_t weight = 1; ///< given with its last admission
  };

  void add(scheduled_sequence& s);
  void remove(const scheduled_sequence& s);

  auto begin() const { return order_.begin(); }
  auto end() const { return order_.end(); }
  std::size_t size() const { return order_.size(); }
  bool empty() const { return order_.empty(); }
  const running_order& order() const { return order_; }

  /// Number of running sequences of a client.
  std::int32_t of(std::uint64_t client) const;
  /// The parts of the clients that have one, by client.
  const std::unordered_map<std::uint64_t, share>& shares() const { return shares_; }
  /// Prompt tokens that the running set still has to compute.
  std::int64_t prompt_tokens_left() const;

private:
  running_order order_;
  std::unordered_map<std::uint64_t, share> shares_; ///< by client
};

} // namespace twill::actors
