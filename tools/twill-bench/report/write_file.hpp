// write_file: a result file, whole or not at all.
#pragma once

#include <string>

namespace twill::bench {

/// Makes the folders, writes beside the file, then renames, so that a crash or a full disk leaves
/// the earlier file as it was. Throws std::runtime_error.
void write_file(const std::string& path, const std::string& contents);

/// Throws std::runtime_error when it can't be read.
std::string read_file(const std::string& path);

} // namespace twill::bench
