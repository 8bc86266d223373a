// websocket_session: one WebSocket (RFC 6455), its frames and timers; what is said is a dialect's.
//
// Threads: everything on the strand of its socket. Text messages only; permessage-deflate is off.
// Ping, pong and the idle time-out are Beast's. While the client does not read, no messages are
// read either.
#pragma once

#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>

#include "net/beast.hpp"
#include "net/http/router.hpp"
#include "net/server_context.hpp"

namespace twill::net {

struct websocket_handshake {
  websocket_path path = websocket_path::none;
  std::string tenant;
  std::string request_id;
  http::request<http::string_body> message;
};

void start_websocket_session(tcp::socket socket, server_context& context,
                             websocket_handshake handshake);

} // namespace twill::net
