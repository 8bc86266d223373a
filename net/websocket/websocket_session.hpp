// websocket_session: the socket of one WebSocket (RFC 6455). It does the reads and writes and runs
// the timers; its websocket_connection decides what to do, and its dialect, the protocol inside the
// WebSocket, makes the text of the messages.
//
// Threads: everything runs on the strand of the socket. Only text messages are accepted;
// permessage-deflate is off. Beast handles ping, pong and the idle time-out. While the client does
// not read its output, the session reads no messages from it.
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
  /// Trace context that is the parent of all requests of this socket; may be empty.
  std::string traceparent;
  std::string subprotocol; ///< subprotocol in the handshake's response; empty: none
  http::request<http::string_body> message;
  listener_kind listener = listener_kind::clients;
};

void start_websocket_session(client_stream stream, open_sockets::slot slot, server_context& context,
                             websocket_handshake handshake);

} // namespace twill::net
