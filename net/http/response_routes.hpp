// Stored responses: GET, DELETE and cancel at /v1/responses/ID, and the items of its input. Any
// thread.
#pragma once

#include "net/http/request_scope.hpp"

namespace twill::net {

/// The object, or with `?stream=true&starting_after=N` its events with numbers above N.
http_answer show_response(request_scope& scope);
http_answer delete_response(request_scope& scope);
http_answer cancel_response(request_scope& scope);
http_answer list_input_items(request_scope& scope);

} // namespace twill::net
