// tgi_error: errors as Text Generation Inference writes them, {"error", "error_type"}. Pure.
#pragma once

#include "net/protocol/api_style.hpp"

namespace twill::net {

/// The statuses are TGI's where it has one for such an error: 422 for what a request asks wrongly,
/// 429 where too much waits, 424 where a step failed, 500 where an output broke off.
styled_error tgi_error(const api_error& error);

} // namespace twill::net
