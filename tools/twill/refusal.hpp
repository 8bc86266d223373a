// refusal: what a user reads when a daemon refuses a request.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tools/common/endpoint.hpp"
#include "tools/common/ws_client.hpp"

namespace twill::tools {

/// The daemon's own words, or its status where it has none. Where a key is missing or unknown: how
/// to give one.
std::string why_refused(const endpoint& where, int status, std::string_view body);

/// What to do about a key that is missing or unknown.
std::string why_no_access(const endpoint& where);

/// A WebSocket to `path`; throws client_error with why_refused() where the daemon refuses it.
std::unique_ptr<ws_client> open_socket(const endpoint& where, const std::string& path);

} // namespace twill::tools
