// system_routes: liveness, readiness, metrics, version and the page at "/routes". On session
// strands.
#pragma once

#include "net/http/request_scope.hpp"
#include "net/metrics.hpp"

namespace twill::net {

http_answer list_routes(request_scope& scope);
http_answer health(request_scope& scope);
http_answer ready(request_scope& scope);
http_answer metrics(request_scope& scope);
http_answer version(request_scope& scope);

/// What metrics are made from.
metrics_sources metrics_of(const server_context& context);

} // namespace twill::net
