// http_client: sends one HTTP/1.1 request to a daemon and returns the complete reply. A call blocks
// until the reply has arrived. Any number of threads may call at the same time.
#pragma once

#include <chrono>
#include <stop_token>
#include <string>
#include <vector>

#include "tools/common/endpoint.hpp"

namespace twill::tools {

struct http_reply {
  int status = 0;
  std::string body;
};

/// A POST request.
struct http_post {
  std::string path;
  std::string body;
  std::string content_type = "application/json";
  std::vector<std::string> headers; ///< "Name: value"
};

/// Sends the request and returns the reply, whatever its status. Throws client_error when the
/// daemon cannot be reached or does not reply in time.
http_reply http_send(const endpoint& where, const http_post& what,
                     std::chrono::milliseconds timeout);

/// Sends a POST with a JSON body, or a GET when `body` is empty, and returns the reply, whatever
/// its status. Throws client_error when the daemon cannot be reached or does not reply in time. A
/// stop request on `stop`, from any thread, ends the wait as the timeout does.
http_reply http_request(const endpoint& where, const std::string& path, const std::string& body,
                        std::chrono::milliseconds timeout, std::stop_token stop = {});

} // namespace twill::tools
