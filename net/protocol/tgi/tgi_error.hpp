// tgi_error: formats errors as Text Generation Inference does, {"error", "error_type"}. The
// functions are pure.
#pragma once

#include "net/protocol/api_style.hpp"

namespace twill::net {

/// Uses TGI's HTTP statuses for errors that TGI has: 422 for an invalid request, 429 for overload,
/// 424 if a step failed, 500 if an output was cut off by an error.
styled_error tgi_error(const api_error& error);

} // namespace twill::net
