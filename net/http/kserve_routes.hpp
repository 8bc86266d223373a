// kserve_routes: health and metadata of the Open Inference Protocol (KServe v2). Inference goes by
// other routes. On session strands.
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
