// response_routes: routes that show, delete and cancel a stored response and that list its input
// items. The path of a stored response is PATH/ID, where PATH is the route that created the
// response, such as /v1/responses. Any thread may call the handlers.
#pragma once

#include "net/http/request_scope.hpp"
#include "net/stored/stored_api.hpp"

namespace twill::net {

/// Returns the response object; with `?stream=true&starting_after=N`, the stream's events with
/// numbers above N.
http_answer show_response(request_scope& scope);
http_answer delete_response(request_scope& scope);
http_answer cancel_response(request_scope& scope);
http_answer list_input_items(request_scope& scope);

/// Answers a POST with Last-Event-ID, which repeats the request of an interrupted stream: sends the
/// stream's events after the one that the header names.
http_answer read_on(request_scope& scope, stored_api api, value body);

} // namespace twill::net
