// history_store: safely replaces a small file that several programs of one user write.
#pragma once

#include <cstdio>
#include <filesystem>
#include <functional>

namespace twill::tools {

/// Lets `write` fill a new file of mode 0600, which then replaces `file` by a rename, so that a
/// killed program leaves either the old or the new file. Creates the folder if it is missing. A
/// lock on the folder admits one process at a time, so what `write` reads of the old file is
/// current. Returns false, and leaves the old file untouched, when `write` returns false or the
/// file cannot be replaced.
bool replace_file(const std::filesystem::path& file, const std::function<bool(std::FILE*)>& write);

} // namespace twill::tools
