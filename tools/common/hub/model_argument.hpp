// model_argument: what a program makes of the word that names a model on its command line or in a
// configuration: '~' is expanded, "hf:..." leads to the hub's cache, and a path that is not there
// but looks like a model of the hub is answered with the command that fetches it.
//
// Any thread. Throws client_error.
#pragma once

#include <string>

#include "tools/common/hub/pull.hpp"

namespace twill::tools::hub {

/// "hf:...", a model of the hub.
bool is_of_hub(const std::string& given);

/// The path of a model that is here, for programs that fetch nothing: of "hf:..." the one in the
/// cache. Other words are paths, presets of random weights and the like, and come back as they are.
std::string local_model(const std::string& given);

/// As local_model(), but a model of the hub is fetched first.
std::string fetched_model(const std::string& given, const pull_events& events);

} // namespace twill::tools::hub
