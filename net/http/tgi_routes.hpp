// tgi_routes: GET /info, as Text Generation Inference has it. On session strands.
#pragma once

#include "net/http/request_scope.hpp"

namespace twill::net {

/// Of the first model, with the limits that are in force.
http_answer tgi_info(request_scope& scope);

} // namespace twill::net
