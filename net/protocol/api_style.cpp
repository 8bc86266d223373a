#include "net/protocol/api_style.hpp"

#include <algorithm>
#include <array>

#include "net/error_map.hpp"
#include "net/protocol/anthropic/error_form.hpp"
#include "net/protocol/llamacpp/llamacpp_error.hpp"
#include "net/protocol/ollama/errors.hpp"
#include "net/protocol/tgi/tgi_error.hpp"

namespace twill::net {

api_style style_of(std::string_view path, bool anthropic_version) {
  // The router ignores a final slash as well.
  if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  if (anthropic_version || path == "/v1/messages" || path.starts_with("/v1/messages/"))
    return api_style::anthropic;
  if (path == "/api" || path.starts_with("/api/")) return api_style::ollama;
  // TGI serves the routes of the Open Inference Protocol too, with errors in TGI's form.
  constexpr std::array<std::string_view, 5> tgi = {"/", "/generate", "/generate_stream", "/info",
                                                   "/v2"};
  if (std::find(tgi.begin(), tgi.end(), path) != tgi.end() || path.starts_with("/v2/health/") ||
      path == "/v2/models" || path.starts_with("/v2/models/"))
    return api_style::tgi;
  constexpr std::array<std::string_view, 5> llamacpp = {"/completion", "/completions",
                                                        "/apply-template", "/props", "/slots"};
  if (std::find(llamacpp.begin(), llamacpp.end(), path) != llamacpp.end())
    return api_style::llamacpp;
  return api_style::openai;
}

styled_error style_error(const api_error& error, api_style style, std::string_view request_id) {
  switch (style) {
  case api_style::anthropic:
    return {map_error(error).http_status, anthropic_error_body(error, request_id)};
  case api_style::ollama:
    return {map_error(error).http_status, ollama_error_body(error)};
  case api_style::tgi:
    return tgi_error(error);
  case api_style::llamacpp:
    return llamacpp_error(error);
  case api_style::openai:
    break;
  }
  return {map_error(error).http_status, error_body(error)};
}

} // namespace twill::net
