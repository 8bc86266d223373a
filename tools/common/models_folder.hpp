// models_folder: the folders on this machine into which models are pulled. Any thread may call the
// functions.
#pragma once

#include <filesystem>
#include <vector>

namespace twill::tools {

/// The folder in which packages keep models for all users of a machine.
inline constexpr const char* machine_models_folder = "/var/lib/twill/models";

/// The folders that are searched for models, whether or not they exist: only $TWILL_MODELS when
/// that is set, otherwise machine_models_folder and the model folder in the user's cache.
std::vector<std::filesystem::path> models_folders();

/// The folder into which models are pulled: $TWILL_MODELS when that is set, otherwise
/// machine_models_folder when this user may write there, otherwise the model folder in the user's
/// cache. Empty when no folder can be determined.
std::filesystem::path models_folder_to_fill();

} // namespace twill::tools
