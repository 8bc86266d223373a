// keys_file: the tenants of a configuration together with the keys of `server.keys_file`.
#pragma once

#include <vector>

#include "config/base/read_file.hpp"
#include "config/options.hpp"

namespace twill::tools {

/// [[tenants]] with the keys that `read` finds in the file, if one is configured. Fails with one
/// line for each fault.
result<std::vector<config::tenant_options>, file_errc>
read_keys_file(const config::options& options, const file_reader& read);

} // namespace twill::tools
