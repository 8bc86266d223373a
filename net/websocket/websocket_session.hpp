// websocket_session: the socket of one WebSocket (RFC 6455): reads, writes and timers; what to do
// is decided by its websocket_connection, what is said by its dialect.
//
// Threads: everything on the strand of its socket. Text messages only; permessage-deflate is off.
// Ping, pong and the idle time-out are Beast's. While the client does not read, no messages are
// read either.
#pragma once

#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>

#include "net/beast.hpp"
#include "net/connection/client_origin.hpp"
#include "net/connection/client_stream.hpp"
#include "net/protocol/dialect.hpp"
#include "net/server_context.hpp"

namespace twill::net {

struct websocket_handshake {
  dialect_opener open = nullptr;
  api_keys::holder holder;
  std::string request_id;
  std::string traceparent; ///< the parent of all requests of this socket; may be empty
  std::string subprotocol; ///< answered to the client; empty: none
  http::request<http::string_body> message;
  listener_kind listener = listener_kind::clients;
};

void start_websocket_session(client_stream stream, open_sockets::slot slot, server_context& context,
                             websocket_handshake handshake);

} // namespace twill::net
