// llamacpp_error: formats errors as llama.cpp's server does, {"error": {"code", "message",
// "type"}}, where `code` is the HTTP status. The functions are pure.
#pragma once

#include "net/protocol/api_style.hpp"

namespace twill::net {

styled_error llamacpp_error(const api_error& error);

} // namespace twill::net
