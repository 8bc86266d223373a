// models_folder: where models lie that were pulled for this machine. Any thread may ask.
#pragma once

#include <filesystem>
#include <vector>

namespace twill::tools {

/// Where the packages keep models for all users of a machine.
inline constexpr const char* machine_models_folder = "/var/lib/twill/models";

/// The folders in which models are looked for, whether or not they exist: $TWILL_MODELS alone when
/// it is set, else machine_models_folder and the models of the user's cache folder.
std::vector<std::filesystem::path> models_folders();

/// The folder into which models are pulled: $TWILL_MODELS when it is set, else
/// machine_models_folder where this user may write, else the models of the user's cache folder.
/// Empty when none of them is known.
std::filesystem::path models_folder_to_fill();

} // namespace twill::tools
