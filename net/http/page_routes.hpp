// page_routes: the web page at "/" (the chat for clients, the dashboard for administrators) and the
// files of both pages at "/page/". Handlers run on the strand of the client's connection.
#pragma once

#include "net/http/request_scope.hpp"

namespace twill::net {

http_answer send_chat_page(request_scope& scope);
http_answer send_dashboard(request_scope& scope);
/// Sends the file that the path names.
http_answer send_page_file(request_scope& scope);

} // namespace twill::net
