// The clients that may use the server and their limits: the tables [[tenants]], and the file of
// further keys (`server.keys_file`).
//
// The types are plain values and the functions are pure, so any thread may use them. Keys appear as
// SHA-256 digests alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/base/result.hpp"

namespace twill::config {

/// One table of [[tenants]]. Each member is a row of config/detail/tenant_keys.cpp.
struct tenant_options {
  std::string name;
  std::vector<std::string> key_sha256; ///< SHA-256 digests of its keys, 64 hex digits each
  std::int32_t weight = 1;      ///< its share, relative to the weights of other waiting tenants
  std::int32_t max_running = 0; ///< sequences that run at once; 0: no limit of its own
  std::int32_t max_queued = 0;  ///< requests that wait; 0: no limit of its own
  std::int32_t tokens_per_minute = 0; ///< prompt and output; 0: no limit
  std::vector<std::string> models;    ///< ids that it may use; empty: all
  bool admin = false;                 ///< its keys open `/admin`

  bool operator==(const tenant_options&) const = default;
};

/// Whether `text` may be the name of a tenant. Names that begin with "key-" are reserved for
/// `server.api_keys`. tenant_name_words() completes the sentence "the name must be ...".
bool is_tenant_name(std::string_view text);
std::string tenant_name_words();

/// The tenant of this name, or null. The pointer is valid as long as the list is unchanged.
const tenant_options* find_tenant(const std::vector<tenant_options>& tenants,
                                  std::string_view name);

/// Whether a tenant may use the model with this id; without a tenant (null), any model may be used.
bool may_use(const tenant_options* tenant, std::string_view model);

enum class keys_file_errc {
  bad_lines, ///< some lines are not valid keys or repeat a key; the detail has a line for each
};

/// Adds the keys of a file's text, whose lines are "NAME sha256:HEX", empty, or comments after "#".
/// A name that no tenant has becomes a tenant with default limits. `file` is the file's name in
/// error messages.
result<std::vector<tenant_options>, keys_file_errc>
add_keys(std::vector<tenant_options> tenants, const std::string& text, const std::string& file);

} // namespace twill::config
