// access_policy: which Host and Origin headers are served. Immutable, any thread.
//
// A web page of a foreign origin must not drive the daemon, neither by a request of its own (CORS,
// WebSocket) nor under a name that it makes point to a loopback address (DNS rebinding).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/options.hpp"

namespace twill::net {

class access_policy {
public:
  explicit access_policy(const config::server_options& options);
  /// That of `server.admin_listen`: as above, but "*" allows nothing there.
  static access_policy of_administrators(const config::server_options& options);

  /// Where only this machine connects, a name must be localhost, an address or one of
  /// `server.hosts`; elsewhere any name will do unless `server.hosts` lists some.
  bool serves_host(std::string_view host_header) const;

  enum class origin_kind {
    none,    ///< no Origin header: not a web page
    own,     ///< a page that this server's own host served
    allowed, ///< one of `server.cors_origins`
    foreign,
  };
  origin_kind classify(std::string_view origin, std::string_view host_header) const;

private:
  std::vector<std::string> hosts_;
  std::vector<std::string> origins_;
  bool any_host_ = false;
  bool any_origin_ = false;
};

} // namespace twill::net
