// server_ledger: the server's part of the ledger (config/base/ledger.hpp). It lists how many
// sockets and buffered bytes are taken, and which objects have them. When no request is left,
// everything must have been given back.
#pragma once

#include "config/base/ledger.hpp"
#include "net/server_context.hpp"

namespace twill::net {

/// Adds to the ledger `to` (see config/base/ledger.hpp) how many sockets, buffered bytes and bytes
/// of stored responses the server has taken. The caller adds what the engine and the batch_service
/// have taken. Any thread may call this.
void account(const server_context& context, ledger& to);

} // namespace twill::net
