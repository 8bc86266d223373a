// server_ledger: what requests have taken from the server, and who holds it. When no request is
// left, everything must have been given back.
#pragma once

#include "config/base/ledger.hpp"
#include "net/server_context.hpp"

namespace twill::net {

/// Adds the server's own counts to the ledger. The caller adds those of the engine and of the
/// batch_service. Any thread.
void account(const server_context& context, ledger& to);

} // namespace twill::net
