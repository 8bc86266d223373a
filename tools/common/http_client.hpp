// Sends one HTTP/1.1 request to the daemon and returns the whole reply. A call blocks until then;
// any number of threads may call at once.
#pragma once

#include <chrono>
#include <string>

#include "tools/common/endpoint.hpp"

namespace twill::tools {

struct http_reply {
  int status = 0;
  std::string body;
};

/// POST with a JSON body, or GET when `body` is empty. Throws client_error when the daemon can't be
/// reached or does not answer in time; any status is a reply.
http_reply http_request(const endpoint& where, const std::string& path, const std::string& body,
                        std::chrono::milliseconds timeout);

} // namespace twill::tools
