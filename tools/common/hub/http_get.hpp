// http_get: one GET of HTTP/1.1, with or without TLS and a proxy, whose body is handed on as it
// comes. Redirects, retries and what a status means are others' work.
//
// A call blocks. Any number of threads may call at once. The certificate must be for the host and
// trusted by the system's authorities, or those of SSL_CERT_FILE.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tools/common/hub/settings.hpp"
#include "tools/common/hub/stopped.hpp"
#include "tools/common/hub/url.hpp"

namespace twill::tools::hub {

/// No connection, or one that ended too early or was silent for too long. Another try may help
/// unless `permanent`.
class connection_error : public std::runtime_error {
public:
  explicit connection_error(const std::string& what, bool permanent = false)
      : std::runtime_error(what), permanent(permanent) {}
  bool permanent;
};

struct http_reply_head {
  int status = 0;
  std::map<std::string, std::string> fields; ///< by their names in lower case; the last one wins

  /// Empty when the field is absent.
  const std::string& field(const std::string& name) const;
};

struct http_request_head {
  url address;
  std::map<std::string, std::string> fields;
};

struct http_rules {
  proxy_settings proxies;
  std::function<bool()> stopped; ///< asked a few times in a second
  std::chrono::seconds connect_timeout{15};
  std::chrono::seconds silence_timeout{30};
};

/// Called with the head; answers whether the body is to be read.
using head_handler = std::function<bool(const http_reply_head&)>;
using body_handler = std::function<void(std::string_view bytes)>;

/// Returns when the body has ended, or after a head whose body is not wanted. Throws
/// connection_error, stopped_error, and what the handlers throw.
void http_get(const http_request_head& request, const http_rules& rules,
              const head_handler& on_head, const body_handler& on_body);

} // namespace twill::tools::hub
