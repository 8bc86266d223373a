// Errors in the form of Ollama's API: {"error": "..."}, whatever layer they come from. Pure.
#pragma once

#include <string>

#include "net/api_error.hpp"

namespace twill::net {

std::string ollama_error_body(const api_error& error);

} // namespace twill::net
