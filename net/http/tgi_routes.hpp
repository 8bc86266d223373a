// tgi_routes: GET /info of Text Generation Inference. The handler runs on the strand of the
// client's connection.
#pragma once

#include "net/http/request_scope.hpp"

namespace twill::net {

/// Describes the first model and the limits that are in force.
http_answer tgi_info(request_scope& scope);

} // namespace twill::net
