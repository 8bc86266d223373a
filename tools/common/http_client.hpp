// Sends one HTTP/1.1 request to a daemon and returns the whole reply. A call blocks until then;
// any number of threads may call at once.
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

/// What is posted.
struct http_post {
  std::string path;
  std::string body;
  std::string content_type = "application/json";
  std::vector<std::string> headers; ///< "Name: value"
};

/// Throws client_error when nobody can be reached or no answer comes in time; any status is a
/// reply.
http_reply http_send(const endpoint& where, const http_post& what,
                     std::chrono::milliseconds timeout);

/// POST with a JSON body, or GET when `body` is empty. Throws client_error when the daemon can't be
/// reached or does not answer in time; any status is a reply. A stop that is asked of `stop`, from
/// any thread, ends the wait as the end of the time does.
http_reply http_request(const endpoint& where, const std::string& path, const std::string& body,
                        std::chrono::milliseconds timeout, std::stop_token stop = {});

} // namespace twill::tools
