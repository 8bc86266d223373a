// home_path: '~' at the beginning of a path that no shell has read, as in a configuration file or
// behind "--model=". Any thread.
#pragma once

#include <string>

namespace twill::tools {

/// "~" and "~/models/a.gguf" with $HOME in the place of '~'; any other text, "~name/..." included,
/// and every text where HOME is not set, as it is.
std::string expand_home(const std::string& path);

} // namespace twill::tools
