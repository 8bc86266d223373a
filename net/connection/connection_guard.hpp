// connection_guard: watches one socket for a client that does not read or does not close. Pure: it
// is told the time and does no I/O. HTTP and WebSocket connections share it.
//
// A client that reads too slowly is noticed in three ways: one write is stuck, the flow gate stays
// shut, or output grows beyond its limit although its producers were asked to rest. Once a
// connection closes, close_by() bounds how long the client may take to close its end.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include "net/connection/flow_gate.hpp"

namespace twill::net {

/// What a connection wants its session to do, beside reading and writing.
struct connection_actions {
  bool cancel_requests = false;
  bool pause_requests = false;
  bool resume_requests = false;
  bool half_close = false; ///< no more output; read on, so that the last bytes are not lost
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
  /// Whether the output of all sockets together is too much.
  void press(bool pressed) noexcept { gate_.press(pressed); }
  /// To be called whenever the bytes that wait have changed; asks producers to rest or to go on.
  void on_waiting_bytes(std::size_t waiting_bytes, time now, connection_actions& actions);
  /// Producers were asked to rest, have had the time to, and yet this much waits.
  bool overrun(std::size_t waiting_bytes, time now) const;

  void on_write_begun(time now) { write_begun_ = now; }
  void on_write_ended() { write_begun_.reset(); }

  /// From now on only this deadline counts.
  void close_by(time when) { close_by_ = when; }
  bool closing() const noexcept { return close_by_.has_value(); }

  /// When check() should be asked again; time::max(): not because of the guard.
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
