#include "net/protocol/anthropic/error_form.hpp"

#include "net/error_map.hpp"
#include "net/protocol/json/json_writer.hpp"

namespace twill::net {
namespace {

std::string_view anthropic_type_of(int http_status) {
  switch (http_status) {
  case 401:
    return "authentication_error";
  case 403:
    return "permission_error";
  case 404:
    return "not_found_error";
  case 408:
  case 504:
    return "timeout_error";
  case 413:
    return "request_too_large";
  case 429:
    return "rate_limit_error";
  case 503:
    return "overloaded_error";
  default:
    return http_status < 500 ? "invalid_request_error" : "api_error";
  }
}

/// Returns "prompt is too long: ", with which the error message must begin, if that was the error,
/// else "". Coding agents search error messages for these words; if they find them, they shorten
/// the conversation.
std::string_view words_before(const api_error& error) {
  const auto* code = std::get_if<actors::errc>(&error.code);
  const bool too_long = code != nullptr && (*code == actors::errc::context_too_long ||
                                            *code == actors::errc::too_large);
  return too_long ? "prompt is too long: " : "";
}

} // namespace

std::string anthropic_error_object(const api_error& error) {
  std::string out;
  json_writer(out)
      .begin_object()
      .field("type", anthropic_type_of(map_error(error).http_status))
      .field("message", std::string(words_before(error)) + error.message)
      .end_object();
  return out;
}

std::string anthropic_error_body(const api_error& error, std::string_view request_id) {
  std::string out;
  json_writer(out)
      .begin_object()
      .field("type", "error")
      .key("error")
      .raw(anthropic_error_object(error))
      .field("request_id", request_id)
      .end_object();
  return out;
}

} // namespace twill::net
