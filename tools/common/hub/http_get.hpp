// http_get: sends one HTTP/1.1 GET, with or without TLS and a proxy, and passes the reply's body to
// a callback as it arrives. The caller must follow redirects, retry and interpret the status.
//
// A call blocks. Any number of threads may call at the same time. The server's certificate must be
// for the requested host, and be signed by an authority of the system or, when SSL_CERT_FILE is
// set, of that file.
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

/// The connection could not be made, ended too early, or delivered nothing for too long. Another
/// attempt may help unless `permanent` is true.
class connection_error : public std::runtime_error {
public:
  explicit connection_error(const std::string& what, bool permanent = false)
      : std::runtime_error(what), permanent(permanent) {}
  bool permanent;
};

struct http_reply_head {
  int status = 0;
  std::map<std::string, std::string> fields; ///< field names in lower case; of repeated fields the
                                             ///< last

  /// Returns the value of a header field, or an empty string when the field is absent.
  const std::string& field(const std::string& name) const;
};

struct http_request_head {
  url address;
  std::map<std::string, std::string> fields;
};

struct http_rules {
  proxy_settings proxies;
  std::function<bool()> stopped; ///< polled a few times per second; true ends the request with
                                 ///< stopped_error
  std::chrono::seconds connect_timeout{15};
  std::chrono::seconds silence_timeout{30};
};

/// Called with the status and header fields of a reply. Returns whether the body must be read.
using head_handler = std::function<bool(const http_reply_head&)>;
using body_handler = std::function<void(std::string_view bytes)>;

/// Sends the GET and returns when the body has ended, or after the head when `on_head` returns
/// false. Throws connection_error, stopped_error, and whatever the callbacks throw.
void http_get(const http_request_head& request, const http_rules& rules,
              const head_handler& on_head, const body_handler& on_body);

} // namespace twill::tools::hub
