// home_path: expands '~' at the beginning of paths that no shell has expanded, such as those in a
// configuration file or after "--model=". Any thread may call it.
#pragma once

#include <string>

namespace twill::tools {

/// Replaces the '~' of "~" and "~/models/a.gguf" by $HOME. Returns all other texts, including
/// "~name/...", unchanged, and every text when HOME is not set.
std::string expand_home(const std::string& path);

} // namespace twill::tools
