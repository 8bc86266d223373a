// system_routes: liveness, readiness, metrics, version, and the descriptions of all routes.
// Handlers run on the strand of the client's connection.
#pragma once

#include "net/http/request_scope.hpp"
#include "net/metrics.hpp"

namespace twill::net {

http_answer list_routes(request_scope& scope);
http_answer docs(request_scope& scope);
http_answer openapi(request_scope& scope); ///< the document of openapi_text()
http_answer health(request_scope& scope);
http_answer ready(request_scope& scope);
http_answer metrics(request_scope& scope);
http_answer version(request_scope& scope);

/// The sources from which metrics are computed.
metrics_sources metrics_of(const server_context& context);

} // namespace twill::net
