// write_file: writes a result file either completely or not at all.
#pragma once

#include <string>

namespace twill::bench {

/// Creates the folders, writes a temporary file beside `path` and renames it, so that a crash or a
/// full disk leaves an earlier file unchanged. Throws std::runtime_error.
void write_file(const std::string& path, const std::string& contents);

/// Throws std::runtime_error when the file can't be read.
std::string read_file(const std::string& path);

} // namespace twill::bench
