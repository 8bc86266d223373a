// llamacpp_routes: GET /props and /slots, POST /apply-template, as llama.cpp's server has them; the
// query `model` names another model than the first. On session strands; the tokenizer's work is
// left to the worker thread.
#pragma once

#include "net/http/request_scope.hpp"

namespace twill::net {

http_answer props(request_scope& scope);
/// With `fail_on_no_slot=1` an error (503) while as many requests run as may.
http_answer slots(request_scope& scope);
http_answer apply_template(request_scope& scope);

} // namespace twill::net
