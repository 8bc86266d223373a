// cache_folder: where what can be had again is kept: fetched models, measured machines. Any thread.
#pragma once

#include <filesystem>
#include <optional>

namespace twill {

/// ${XDG_CACHE_HOME:-$HOME/.cache}/twill, whether or not it exists; nothing when neither is set.
std::optional<std::filesystem::path> cache_folder();

} // namespace twill
