// server_ledger: the server's part of the ledger (config/base/ledger.hpp), which lists how many
// sockets and buffered bytes are taken, and who holds them. When no request is left, everything
// must have been given back.
#pragma once

#include "config/base/ledger.hpp"
#include "net/server_context.hpp"

namespace twill::net {

/// Adds the server's own counts to the ledger. The caller adds the counts of the engine and of the
/// batch_service. Any thread.
void account(const server_context& context, ledger& to);

} // namespace twill::net
