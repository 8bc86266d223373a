// api_style: the server whose API a request uses (OpenAI, Anthropic, Ollama, TGI, llama.cpp). The
// style decides the JSON form of error replies. Pure functions, which any thread may call.
//
// Routes that twill took from no other server count as OpenAI's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "net/api_error.hpp"

namespace twill::net {

enum class api_style : std::uint8_t { openai, anthropic, ollama, tgi, llamacpp };

/// Determines the style from the request path, whether or not twill serves that path.
/// `anthropic_version` is true when the request has the header "anthropic-version"; Anthropic's
/// clients send that header also to paths that OpenAI's API has, such as /v1/models.
api_style style_of(std::string_view path, bool anthropic_version);

struct styled_error {
  int http_status = 500;
  std::string body;
};

/// Formats `error` in the JSON form of `style`. `request_id` is the id of the request; some APIs
/// repeat it in the error body.
styled_error style_error(const api_error& error, api_style style, std::string_view request_id);

} // namespace twill::net
