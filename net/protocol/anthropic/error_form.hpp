// error_form: formats errors as Anthropic's API does. The functions are pure; any thread may call
// them.
#pragma once

#include <string>
#include <string_view>

#include "net/api_error.hpp"

namespace twill::net {

/// Returns {"type":..., "message":...}, where the type follows from the HTTP status.
std::string anthropic_error_object(const api_error& error);

/// Returns the whole body of an error reply, {"type":"error","error":{...},"request_id":...}.
std::string anthropic_error_body(const api_error& error, std::string_view request_id);

} // namespace twill::net
