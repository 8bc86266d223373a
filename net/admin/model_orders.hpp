// model_orders: which models have memory, and orders to them, for administrators. On session
// strands; nothing waits: an order returns at once, with the state it led to.
#pragma once

#include "net/http/request_scope.hpp"

namespace twill::net {

http_answer list_model_states(request_scope& scope);
http_answer load_model(request_scope& scope);
http_answer sleep_model(request_scope& scope);
http_answer unload_model(request_scope& scope);

} // namespace twill::net
