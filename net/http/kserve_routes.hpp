// kserve_routes: health and metadata routes of the Open Inference Protocol (KServe v2). The
// protocol's inference routes are not served. Handlers run on the strand of the client's
// connection.
#pragma once

#include "net/http/request_scope.hpp"

namespace twill::net {

http_answer kserve_live(request_scope& scope);
http_answer kserve_ready(request_scope& scope);
http_answer kserve_server(request_scope& scope);
http_answer kserve_model(request_scope& scope);
/// A model that is asleep counts as ready: the next request loads it.
http_answer kserve_model_ready(request_scope& scope);

} // namespace twill::net
