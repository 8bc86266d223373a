// Stored responses: GET, DELETE and cancel at PATH/ID, where PATH is where they were asked, such as
// /v1/responses, and the items of a response's input. Any thread.
#pragma once

#include "net/http/request_scope.hpp"
#include "net/stored/stored_api.hpp"

namespace twill::net {

/// The object, or with `?stream=true&starting_after=N` its events with numbers above N.
http_answer show_response(request_scope& scope);
http_answer delete_response(request_scope& scope);
http_answer cancel_response(request_scope& scope);
http_answer list_input_items(request_scope& scope);

/// Answers a POST with Last-Event-ID, which repeats the request of a stream that broke: with the
/// events behind that one.
http_answer read_on(request_scope& scope, stored_api api, value body);

} // namespace twill::net
