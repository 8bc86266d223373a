// model_argument: resolves the text that names a model on a command line or in a configuration. A
// leading '~' is expanded to the home folder. "hf:..." is looked up in the cache of Hugging Face's
// hub. For a path that does not exist but looks like the name of a model on the hub, the error
// message gives the command that fetches that model.
//
// Any thread may call these functions. They throw client_error.
#pragma once

#include <string>

#include "tools/common/hub/pull.hpp"

namespace twill::tools::hub {

/// Whether the text begins with "hf:", which names a model of Hugging Face's hub.
bool is_of_hub(const std::string& given);

/// Returns the local path of a model without fetching anything. "hf:..." gives the path in the
/// cache of the hub, or an error when the model is not there. Other texts (paths, and
/// "dummy:PRESET" for a model with random weights) are returned unchanged except for '~'.
std::string local_model(const std::string& given);

/// Like local_model(), but a model of the hub that is not in the cache is fetched first.
std::string fetched_model(const std::string& given, const pull_events& events);

} // namespace twill::tools::hub
