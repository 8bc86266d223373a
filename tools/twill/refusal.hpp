// refusal: what a user reads when a daemon refuses a request.
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

/// What to do about a key that is missing or unknown.
std::string why_no_access(const endpoint& where);

/// A WebSocket to `path`; throws client_error with why_refused() where the daemon refuses it.
std::unique_ptr<ws_client> open_socket(const endpoint& where, const std::string& path);

} // namespace twill::tools
