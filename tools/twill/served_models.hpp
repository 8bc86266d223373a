// served_models: the models that a daemon serves to clients with the given API key.
#pragma once

#include <vector>

#include "tools/twill/daemon_view.hpp"

namespace twill::tools {

/// Blocks during the request. Throws client_error when the daemon cannot be reached or refuses.
std::vector<model_view> served_models(const endpoint& where);

} // namespace twill::tools
