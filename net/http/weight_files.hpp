// look_at_weights: finds the size and the modification time of a model's files. Reads the file
// system; called on a worker thread.
#pragma once

#include <string>

#include "net/protocol/ollama/models.hpp"

namespace twill::net {

/// `path` is a file or a folder; for anything else all results are unknown.
weight_files look_at_weights(const std::string& path);

} // namespace twill::net
