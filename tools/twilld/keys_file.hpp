// keys_file: the tenants of a configuration together with the keys of `server.keys_file`.
#pragma once

#include <vector>

#include "config/base/read_file.hpp"
#include "config/options.hpp"

namespace twill::tools {

/// Returns the [[tenants]] of the configuration, together with the keys in `server.keys_file` if
/// that is configured; the file is read by `read`. On failure the detail has one line per fault.
result<std::vector<config::tenant_options>, file_errc>
read_keys_file(const config::options& options, const file_reader& read);

} // namespace twill::tools
