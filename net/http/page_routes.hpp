// page_routes: the chat page at "/" and its files at "/page/". On session strands.
#pragma once

#include "net/http/request_scope.hpp"

namespace twill::net {

http_answer send_page(request_scope& scope);

} // namespace twill::net
