// history_store: replaces a small file that several programs of one user write to.
#pragma once

#include <cstdio>
#include <filesystem>
#include <functional>

namespace twill::tools {

/// Has `write` fill a new file that takes the place of `file` in one step, with mode 0600, so that
/// a program that is killed leaves the old or the new file. One process at a time does so in that
/// folder, which is made where it is missing: what `write` reads of the old file is up to date.
/// False when `write` returns that, or the file could not be replaced; the old one is untouched.
bool replace_file(const std::filesystem::path& file, const std::function<bool(std::FILE*)>& write);

} // namespace twill::tools
