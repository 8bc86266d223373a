// The replies of GET /v1/models and /v1/models/{id}: OpenAI's list with vLLM's additional members.
// The functions are pure.
#pragma once

#include <span>
#include <string>

#include "actors/port/engine_port.hpp"

namespace twill::net {

/// The name of a state in replies: "ready", "asleep", ...
const char* name_of(actors::model_state state);

std::string models_body(std::span<const actors::model_info> models);
std::string model_body(const actors::model_info& model);

} // namespace twill::net
