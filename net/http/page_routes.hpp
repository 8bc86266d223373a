// page_routes: the pages at "/", the chat for clients and the dashboard for administrators, and
// their files at "/page/". On session strands.
#pragma once

#include "net/http/request_scope.hpp"

namespace twill::net {

http_answer send_chat_page(request_scope& scope);
http_answer send_dashboard(request_scope& scope);
/// The file that the path names.
http_answer send_page_file(request_scope& scope);

} // namespace twill::net
