// connection_guard: detects a client that does not read its output, or that does not close its end
// of the connection. It is pure: the caller passes the time, and the class does no I/O. HTTP and
// WebSocket connections both use it.
//
// A client counts as a slow reader in three cases: one write does not complete, the flow gate
// (flow_gate.hpp) stays shut, or the waiting output exceeds its limit although the requests that
// produce it have been paused. Once a connection is closing, close_by() bounds how long the client
// may take to close its end.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include "net/connection/flow_gate.hpp"

namespace twill::net {

/// The actions that a connection asks of its session, besides reading and writing.
struct connection_actions {
  bool cancel_requests = false;
  bool pause_requests = false;
  bool resume_requests = false;
  /// The session must send no more output, but go on reading: unread input at the close would reset
  /// the connection, and the client could lose the last bytes sent.
  bool half_close = false;
  bool close = false;
};

class connection_guard {
public:
  using clock = std::chrono::steady_clock;
  using time = clock::time_point;

  struct limits {
    std::size_t max_waiting_bytes;
    std::chrono::milliseconds slow_reader_timeout;
  };
  enum class verdict { fine, slow_reader, close };

  explicit connection_guard(limits l) : limits_(l), gate_(l.max_waiting_bytes) {}

  bool gate_open() const noexcept { return gate_.open(); }
  /// `pressed` says whether the waiting output of all sockets together is too much.
  void press(bool pressed) noexcept { gate_.press(pressed); }
  /// Call this whenever the number of waiting bytes has changed. It sets the actions that pause or
  /// resume the client's requests.
  void on_waiting_bytes(std::size_t waiting_bytes, time now, connection_actions& actions);
  /// Returns whether `waiting_bytes` exceeds the limit although the client's requests have been
  /// paused for long enough to have stopped.
  bool overrun(std::size_t waiting_bytes, time now) const;

  void on_write_begun(time now) { write_begun_ = now; }
  void on_write_ended() { write_begun_.reset(); }

  /// After this call the deadline `when` replaces the deadlines for slow readers.
  void close_by(time when) { close_by_ = when; }
  bool closing() const noexcept { return close_by_.has_value(); }

  /// The time at which check() must be called next, or time::max() if the guard has no deadline.
  time next_deadline() const;
  verdict check(time now) const;

private:
  time slow_reader_deadline() const;

  limits limits_;
  flow_gate gate_;
  time shut_since_{};
  std::optional<time> write_begun_;
  std::optional<time> close_by_;
};

} // namespace twill::net
