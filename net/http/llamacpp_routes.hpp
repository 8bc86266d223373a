// llamacpp_routes: GET /props and /slots and POST /apply-template of llama.cpp's server. The query
// parameter `model` selects a model other than the first. Handlers run on the strand of the
// client's connection; calls of the tokenizer run on a worker thread.
#pragma once

#include "net/http/request_scope.hpp"

namespace twill::net {

http_answer props(request_scope& scope);
/// With `fail_on_no_slot=1` the reply is an error (503) while the greatest allowed number of
/// requests runs.
http_answer slots(request_scope& scope);
http_answer apply_template(request_scope& scope);

} // namespace twill::net
