// http_session: the socket of one HTTP/1.1 client: reads, writes and timers. What to do is decided
// by its http_connection, what to answer by the router.
//
// Threads: everything runs on the strand of its socket. A session keeps itself alive through its
// pending operations, until the socket closes or becomes a WebSocket. Bytes that arrive while a
// reply is computed are pipelined requests; they wait in the bounded input buffer.
#pragma once

#include "net/beast.hpp"
#include "net/connection/client_origin.hpp"
#include "net/connection/client_stream.hpp"
#include "net/server_context.hpp"

namespace twill::net {

/// Starts a session on an accepted socket whose executor is a strand.
void start_http_session(client_stream stream, open_sockets::slot slot, server_context& context,
                        client_origin origin);

} // namespace twill::net
