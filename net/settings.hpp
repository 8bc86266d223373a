// settings: the options that a reload changes in a running server. A component that needs a value
// gets the settings in force, and keeps them only as long as its current work takes.
//
// Thread safety: a settings object never changes; current_settings locks a mutex of its own.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "config/options.hpp"
#include "net/api_keys.hpp"
#include "net/http/access_policy.hpp"

namespace twill::net {

struct settings {
  explicit settings(const config::options& o)
      : limits(o.limits), tenants(o.tenants),
        keys(o.server.api_keys, o.tenants, !o.server.keys_file.empty()), access(o.server),
        admin_access(access_policy::of_administrators(o.server)),
        drain_timeout(o.server.drain_timeout), metrics_compat(o.metrics.compat) {}

  /// The configuration of a tenant, or null.
  const config::tenant_options* tenant(const std::string& name) const {
    return config::find_tenant(tenants, name);
  }

  const config::limit_options limits;
  const std::vector<config::tenant_options> tenants;
  const api_keys keys;
  const access_policy access;
  const access_policy admin_access; ///< the access rules at `server.admin_listen`
  const std::chrono::milliseconds drain_timeout;
  const std::string metrics_compat; ///< the other set of names that /metrics also publishes
};
using settings_ptr = std::shared_ptr<const settings>;

class current_settings {
public:
  explicit current_settings(const config::options& o)
      : current_(std::make_shared<const settings>(o)) {}

  settings_ptr get() const {
    const std::lock_guard lock(mutex_);
    return current_;
  }
  void replace(const config::options& o) {
    auto next = std::make_shared<const settings>(o);
    const std::lock_guard lock(mutex_);
    current_.swap(next);
  }

private:
  mutable std::mutex mutex_;
  settings_ptr current_;
};

} // namespace twill::net
