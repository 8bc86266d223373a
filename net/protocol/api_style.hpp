// api_style: whose API a request speaks, which decides the form of its errors. Pure.
//
// Routes that twill took from no other server count as OpenAI's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "net/api_error.hpp"

namespace twill::net {

enum class api_style : std::uint8_t { openai, anthropic, ollama, tgi, llamacpp };

/// By the path, whether it is served or not; `anthropic_version` says that the request has that
/// header, which Anthropic's clients send to paths that OpenAI has as well.
api_style style_of(std::string_view path, bool anthropic_version);

struct styled_error {
  int http_status = 500;
  std::string body;
};

/// An error as a client of this API expects it; `request_id` is the request's, which some say.
styled_error style_error(const api_error& error, api_style style, std::string_view request_id);

} // namespace twill::net
