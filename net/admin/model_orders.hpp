// model_orders: HTTP handlers with which administrators list the states of models and load, sleep
// or unload a model. They run on the strand of the client's connection and do not wait: each reply
// is sent at once and has the state in which the model is after the order.
#pragma once

#include "net/http/request_scope.hpp"

namespace twill::net {

http_answer list_model_states(request_scope& scope);
http_answer load_model(request_scope& scope);
http_answer sleep_model(request_scope& scope);
http_answer unload_model(request_scope& scope);

} // namespace twill::net
