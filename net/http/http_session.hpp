// http_session: the socket of one HTTP/1.1 client, with its reads, writes and timers. An
// http_connection decides what the socket does next, and the router computes the replies.
//
// Threads: everything runs on the strand of the socket. A session keeps itself alive by its pending
// operations, until the socket closes or becomes a WebSocket. Bytes that arrive while a reply is
// computed are pipelined requests, which wait in the bounded input buffer.
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
