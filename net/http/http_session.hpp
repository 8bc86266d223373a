// http_session: one HTTP/1.1 connection: parse, route, reply, stream, until it closes or upgrades.
//
// Threads: everything runs on the strand of its socket. It keeps itself alive through its pending
// operations. Beast and Asio stay in the .cpp.
//
// A read is always pending, also while a reply is computed: that is how a client's leaving is seen
// at once. Bytes that arrive meanwhile are pipelined requests; they wait in the (bounded) input
// buffer.
#pragma once

#include "net/beast.hpp"
#include "net/server_context.hpp"

namespace twill::net {

/// Starts a session on an accepted socket whose executor is a strand.
void start_http_session(tcp::socket socket, server_context& context);

} // namespace twill::net
