// access_policy: checks the Host and Origin headers of requests. An object never changes, and any
// thread may use it.
//
// A web page of a foreign origin must not be able to use the daemon, neither by its own requests
// (CORS, WebSocket) nor under a host name that resolves to a loopback address (DNS rebinding).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/options.hpp"

namespace twill::net {

class access_policy {
public:
  explicit access_policy(const config::server_options& options);
  /// The policy of the listener `server.admin_listen`: the rules of the constructor above, except
  /// that a "*" among the allowed hosts or origins allows nothing.
  static access_policy of_administrators(const config::server_options& options);

  /// If only this machine can connect, the host must be localhost, an IP address or one of
  /// `server.hosts`. Otherwise any host is accepted, unless `server.hosts` lists some.
  bool serves_host(std::string_view host_header) const;

  enum class origin_kind {
    none,    ///< the request has no Origin header, so it is not from a web page
    own,     ///< a page that was served by this server's own host
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
