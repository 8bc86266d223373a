// read_file: the whole content of a small file, with a reason when it cannot be had. Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "config/base/result.hpp"

namespace twill {

enum class file_errc { unreadable };

/// Fails for what is no regular file, and for a file of more than `max_bytes`.
result<std::string, file_errc> read_file(const std::string& path, std::int64_t max_bytes);

/// read_file() with a bound of its own, or something that stands in for it.
using file_reader = std::function<result<std::string, file_errc>(const std::string& path)>;

} // namespace twill
