// agent_check: answers a load balancer that asks, on a port of its own, whether this daemon takes
// new requests: HAProxy's agent check (configuration manual, `agent-check`).
//
// Whoever connects is sent one line, and the socket is closed; nothing is read. All functions on
// the strand that the object was made with, which outlives it.
#pragma once

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <list>
#include <string>

#include "net/beast.hpp"
#include "net/listeners.hpp"

namespace twill::net {

/// "up ready N%", where N is the share of places that are free, at least 1, since 0 would take the
/// daemon out of the rotation while it still has a queue; "drain" where new requests are not taken.
/// `drain` leaves the streams under way alone, which `down` would not.
std::string agent_line(bool takes_requests, std::int64_t taken_places, std::int64_t all_places);

class agent_check {
public:
  /// `line` is asked anew for each connection.
  agent_check(const asio::any_io_executor& strand, listeners& sockets,
              std::function<std::string()> line);
  void begin();
  void stop();

private:
  using acceptor = asio::basic_socket_acceptor<asio::generic::stream_protocol>;
  struct entrance {
    acceptor gate;
    asio::steady_timer pause;
  };

  void accept(entrance& at);

  std::list<entrance> entrances_;
  std::function<std::string()> line_;
};

} // namespace twill::net
