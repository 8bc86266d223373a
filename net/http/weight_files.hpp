// look_at_weights: the size and the time of a model's files. Reads the file system: on the worker
// thread.
#pragma once

#include <string>

#include "net/protocol/ollama/models.hpp"

namespace twill::net {

/// `path` names a file or a folder; nothing is known of anything else.
weight_files look_at_weights(const std::string& path);

} // namespace twill::net
