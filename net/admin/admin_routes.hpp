// admin_routes: what administrators ask for at `server.admin_listen`. Called on session strands; a
// reload is done on the worker thread.
#pragma once

#include "net/http/request_scope.hpp"

namespace twill::net {

/// The methods and paths that are served there.
http_answer list_admin_routes(request_scope& scope);
/// The public metrics, and those of each tenant and model.
http_answer admin_metrics(request_scope& scope);

/// POST /admin/reload: reads the configuration anew, and tells key by key what changed; 400 with
/// the faults, when nothing did.
http_answer reload(request_scope& scope);
/// GET /admin/state: the engine, its models, each tenant's requests and tokens, who holds which KV
/// blocks, and what waits in mailboxes.
http_answer show_state(request_scope& scope);
/// GET /admin/ledger: what requests have taken, who holds it, and what does not add up.
http_answer show_ledger(request_scope& scope);

} // namespace twill::net
