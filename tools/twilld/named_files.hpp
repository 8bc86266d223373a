// named_files: checks early that the models, files and folders named in the configuration and on
// the command line exist. The functions block while they read headers of models, which for models
// of Hugging Face's hub may be downloaded. Except for the hub's cache they change nothing on disk.
#pragma once

#include <string>
#include <vector>

#include "config/options.hpp"

namespace twill::tools {

/// Replaces `model.path` by the path to load. An empty `model.path` becomes the path of the default
/// model, in the cache folder or in a models folder (see tools/common/models_folder.hpp). "hf:..."
/// is checked to be well-formed and stays as it is. Throws std::runtime_error, with advice, when
/// the path does not exist, when a folder holds no model, or when "hf:..." is malformed. Other
/// faults are found when the model is opened. When `models` is configured, only its "hf:..." names
/// are checked, because the model of an entry may be put in place later.
void find_models(config::options& options);

/// Returns one line for each configuration key whose value cannot be used. Checked are the models
/// (headers, tokenizer and chat template are read as for serving), TLS files, `offload.dir` and the
/// user named by `server.user`. For a model of the hub that is not in the cache, only the headers
/// are fetched.
std::vector<std::string> faults_of_named_files(const config::options& options);

/// Throws std::runtime_error when the file of --address-file, to which twilld writes its addresses,
/// cannot be written. The check is made at the start, because scripts that wait for the file would
/// otherwise wait forever.
void check_address_file(const std::string& path);

} // namespace twill::tools
