// server_ledger: what requests have taken of the server, and who holds it. Once no request is left,
// all of it has to be given back.
#pragma once

#include "config/base/ledger.hpp"
#include "net/server_context.hpp"

namespace twill::net {

/// Adds what the server counts to what its engine and its batch_service do. Any thread.
void account(const server_context& context, ledger& to);

} // namespace twill::net
