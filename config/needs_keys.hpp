// needs_keys: whether clients must show an API key. The functions are pure.
#pragma once

#include "config/options.hpp"

namespace twill::config {

/// True if a key is configured, or a file that may hold keys. Otherwise every client is admitted.
inline bool needs_keys(const options& o) {
  return !o.server.api_keys.empty() || !o.tenants.empty() || !o.server.keys_file.empty();
}

} // namespace twill::config
