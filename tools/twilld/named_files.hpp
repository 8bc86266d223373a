// named_files: whether what the configuration and the command line name is there, before anything
// depends on it. Blocks while it reads headers, and while a model of
// the hub is fetched; changes nothing else on disk.
#pragma once

#include <string>
#include <vector>

#include "config/options.hpp"
#include "tools/common/hub/pull.hpp"

namespace twill::tools {

/// The path that is served: the configured one, else that of the default model, in the cache folder
/// or in a models folder (see tools/common/models_folder.hpp). A model of Hugging Face's hub is
/// fetched, unless it is in its cache. Throws std::runtime_error with what to do when the model is
/// nowhere, and hub::stopped_error.
std::string resolve_model(const std::string& configured, const hub::pull_events& events);

/// One line for each key that names something which cannot be used: the model, whose headers,
/// tokenizer and template are read as for serving, TLS files, the user, folders. Of a model of the
/// hub that is not in the cache the headers are fetched.
std::vector<std::string> faults_of_named_files(const config::options& options);

/// Throws std::runtime_error when nothing is at the path, or a folder there holds no model: it is
/// told before an engine is started. Whoever opens the model finds out everything else.
void check_model_place(const std::string& key, const std::string& path);

/// Throws std::runtime_error when the address file could not be written once the server is ready:
/// scripts that wait for it would wait for ever.
void check_address_file(const std::string& path);

} // namespace twill::tools
