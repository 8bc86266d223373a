// refusal: the error messages for requests that a daemon refuses.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tools/common/endpoint.hpp"
#include "tools/common/ws_client.hpp"

namespace twill::tools {

/// Returns the daemon's error message, or the HTTP status when the reply has no message. Where an
/// API key is missing or unknown, the text also says how to give one.
std::string why_refused(const endpoint& where, int status, std::string_view body);

/// What a user can do about an API key that is missing or unknown.
std::string why_no_access(const endpoint& where);

/// Opens a WebSocket to `path`. When the daemon refuses it, throws client_error with the text of
/// why_refused().
std::unique_ptr<ws_client> open_socket(const endpoint& where, const std::string& path);

} // namespace twill::tools
