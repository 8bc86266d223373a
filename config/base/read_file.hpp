// read_file: reads the whole content of a small file, or fails with a reason. Any thread may call
// it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "config/base/result.hpp"

namespace twill {

enum class file_errc { unreadable };

/// Fails if the path is not a regular file, or if the file has more than `max_bytes`.
result<std::string, file_errc> read_file(const std::string& path, std::int64_t max_bytes);

/// The type of read_file() with a fixed bound, or of a replacement for it.
using file_reader = std::function<result<std::string, file_errc>(const std::string& path)>;

} // namespace twill
