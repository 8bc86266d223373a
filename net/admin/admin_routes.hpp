// admin_routes: the HTTP handlers for administrators at `server.admin_listen`. They are called on
// the strand of the client's connection; `POST /admin/reload` does its work on the worker thread.
#pragma once

#include "net/http/request_scope.hpp"

namespace twill::net {

/// Lists the methods and paths that `server.admin_listen` serves.
http_answer list_admin_routes(request_scope& scope);
/// Returns the public metrics together with those of each tenant and model.
http_answer admin_metrics(request_scope& scope);

/// POST /admin/reload: reads the configuration again and reports for each configuration key what
/// has changed. If the new configuration is refused, the reply has status 400 and lists the faults,
/// and nothing has changed.
http_answer reload(request_scope& scope);
/// GET /admin/state: the engine, its models, the requests and tokens of each tenant, the sequences
/// that hold KV blocks, and the number of messages that wait in the mailboxes of the engine's
/// actors.
http_answer show_state(request_scope& scope);
/// GET /admin/ledger: what requests have taken, who holds it, and which sums disagree.
http_answer show_ledger(request_scope& scope);

} // namespace twill::net
