// served_models: the models that a daemon serves to whoever asks with this key.
#pragma once

#include <vector>

#include "tools/twill/daemon_view.hpp"

namespace twill::tools {

/// Blocks while it asks; throws client_error where the daemon cannot be reached or refuses.
std::vector<model_view> served_models(const endpoint& where);

} // namespace twill::tools
