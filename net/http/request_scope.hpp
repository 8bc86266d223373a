// request_scope: the arguments of an endpoint's handler. Plain references, valid during the call.
#pragma once

#include <string>

#include "net/http/http_types.hpp"
#include "net/server_context.hpp"

namespace twill::net {

struct request_scope {
  http_request& request;
  server_context& context;
  std::string tenant;
  std::string wildcard; ///< the part of the path that "*" in the endpoint's path matches
};

using route_handler = http_answer (*)(request_scope&);

} // namespace twill::net
