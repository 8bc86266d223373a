// Formats errors as Ollama's API does, {"error": "..."}. The functions are pure.
#pragma once

#include <string>

#include "net/api_error.hpp"

namespace twill::net {

std::string ollama_error_body(const api_error& error);

} // namespace twill::net
