// waiting_queue: the sequences that wait to be admitted, and the limits of clients on the number of
// their sequences in line.
//
// An object has no side effects outside itself; one thread at a time may use it. The line holds the
// waiting sequences that may be admitted, in the order of service. Paused and held sequences
// (scheduler::pause() and hold()) are not in the line. A client with a limit has no more sequences
// in line than it may still run, so that the line never waits for that client; its other sequences
// stay out of the line until it may run them (`held_back`). The limit is the one given with the
// client's last arrival.
//
// Invariant: of the waiting sequences of a client, not counting paused and held ones, those in line
// are served before those that its limit keeps out of the line. Sequences belong to the scheduler;
// the queue has pointers to them, so a waiting sequence must neither move nor change its
// priority_key, `paused` or `held`.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "actors/scheduling/admission_policy.hpp"
#include "actors/scheduling/running_set.hpp"
#include "actors/scheduling/scheduled_sequence.hpp"
#include "config/base/ledger.hpp"

namespace twill::actors {

class waiting_queue {
public:
  /// `running` tells how much of its limit a client uses; it must outlive the queue.
  explicit waiting_queue(const running_set& running) : running_(running) {}

  /// A sequence of this client arrives. The client is known from now on, and a new limit applies to
  /// all of its sequences, including those that arrived with another limit.
  void note_arrival(const new_sequence& arrived);
  /// A sequence has left for good. It must not wait any more.
  void note_left(const scheduled_sequence& s);

  /// Adds a sequence whose client is known. Every sequence enters the queue through this function.
  void add(scheduled_sequence& s);
  /// Removes a waiting sequence. Every sequence that leaves the queue without being admitted leaves
  /// it through this function.
  void remove(scheduled_sequence& s);
  /// Takes an admitted sequence out of the line (the sequences that may be admitted); returns the
  /// sequence that follows it in the line. The caller then adds it to the running set.
  service_order::const_iterator admit(service_order::const_iterator admitted);
  /// Adds the client's first waiting sequences to the line (the sequences that may be admitted), as
  /// many as the client may still run. To be called when a sequence of the client has left the
  /// running set.
  void refill(std::uint64_t client);

  /// The sequences that may be admitted, in the order of service.
  const service_order& line() const { return line_; }
  /// The names of what account() counts.
  static constexpr const char* sequences_in_line = "sequences in line";
  static constexpr const char* sequences_of_clients = "sequences of clients";
  /// Adds what this class counts to the ledger, without the holders.
  void account(ledger& to) const;

private:
  /// The waiting, not paused sequences of a client with a limit.
  struct limited_line {
    /// sequences that are also in line_, as many as the client may still run
    service_order in_line;
    service_order held_back; ///< the other sequences, all of which are served later
  };
  /// A client that has sequences in the scheduler.
  struct known_client {
    std::int32_t sequences = 0;
    std::int32_t most_running = 0; ///< given with its last arrival; 0: no limit of its own
  };

  bool is_limited(const scheduled_sequence& s) const {
    return clients_.at(s.client).most_running > 0;
  }
  void limit(std::uint64_t client, std::int32_t most_running);

  const running_set& running_;
  service_order line_;   ///< waiting sequences that are not paused, held or held back
  service_order paused_; ///< waiting sequences that are paused or held
  std::unordered_map<std::uint64_t, limited_line> limited_;
  std::unordered_map<std::uint64_t, known_client> clients_;
};

} // namespace twill::actors
