// agent_check: the server side of HAProxy's agent check (see `agent-check` in HAProxy's
// configuration manual). It listens on a port of its own, where a load balancer asks whether this
// daemon accepts new requests.
//
// Each connection receives one line and is then closed; nothing is read from the client. Call
// all functions on the strand that is given to the constructor; the strand must outlive the object.
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

/// Returns "up ready N%" while new requests are accepted, else "drain". `all_places` is the number
/// of requests that may run at once, and `taken_places` the number that run or wait. N is the
/// percentage of places that are free. N is at least 1, because 0 would take the daemon out of the
/// rotation while it still has a queue. `drain` does not disturb the streams that are running,
/// whereas `down` would.
std::string agent_line(bool takes_requests, std::int64_t taken_places, std::int64_t all_places);

class agent_check {
public:
  /// `line` is called once for each connection and returns the text to send.
  agent_check(const asio::any_io_executor& strand, listeners& sockets,
              std::function<std::string()> line);
  void begin();
  void stop();

private:
  using acceptor = asio::basic_socket_acceptor<asio::generic::stream_protocol>;
  struct listening_socket {
    acceptor socket;
    asio::steady_timer pause;
  };

  void accept(listening_socket& at);

  std::list<listening_socket> listening_;
  std::function<std::string()> line_;
};

} // namespace twill::net
