// cache_folder: the folder for files that can be downloaded or computed again, such as the default
// model and measurements of the machine's speed. Any thread may call the function.
#pragma once

#include <filesystem>
#include <optional>

namespace twill {

/// ${XDG_CACHE_HOME:-$HOME/.cache}/twill, whether or not it exists; nothing when neither is set.
std::optional<std::filesystem::path> cache_folder();

} // namespace twill
