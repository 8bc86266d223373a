// find_model: which served model a request body asks for. Any thread.
#pragma once

#include "config/base/value.hpp"
#include "net/api_error.hpp"

namespace twill::net {

/// The model that `model` in the body names; without one, the first model that is served.
result<actors::model_info> find_model(const actors::engine_port& engine, const value& body);

} // namespace twill::net
