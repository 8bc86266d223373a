// named_files: whether what the configuration and the command line name is there, before anything
// depends on it. Blocks while it reads headers, also those of a model of the hub; changes nothing
// on disk but the hub's cache.
#pragma once

#include <string>
#include <vector>

#include "config/options.hpp"

namespace twill::tools {

/// Puts the path of what one model alone is served from in its place: the configured one, else that
/// of the default model, in the cache folder or in a models folder (see
/// tools/common/models_folder.hpp). "hf:..." stays as it is. Throws std::runtime_error with what to
/// do when nothing is there, or a folder holds no model, or a name of the hub is none. Whoever
/// opens the model finds out everything else; one of several may also come later.
void find_models(config::options& options);

/// One line for each key that names something which cannot be used: the model, whose headers,
/// tokenizer and template are read as for serving, TLS files, the user, folders. Of a model of the
/// hub that is not in the cache the headers are fetched.
std::vector<std::string> faults_of_named_files(const config::options& options);

/// Throws std::runtime_error when the address file could not be written once the server is ready:
/// scripts that wait for it would wait for ever.
void check_address_file(const std::string& path);

} // namespace twill::tools
