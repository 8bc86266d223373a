#include "net/error_map.hpp"

#include <variant>

#include "actors/port/error_words.hpp"
#include "config/base/assert.hpp"
#include "net/protocol/json/json_writer.hpp"

namespace twill::net {
namespace {

constexpr std::string_view invalid = "invalid_request_error";
constexpr std::string_view unavailable = "unavailable_error";
constexpr std::uint16_t policy = 1008;
constexpr std::uint16_t internal = 1011;
constexpr std::uint16_t again_later = 1013;
constexpr std::uint16_t going_away = 1001;

} // namespace

wire_error map_error(errc code) {
  switch (code) {
  case errc::bad_json:
    return {400, 1007, invalid, "invalid_json"};
  case errc::bad_utf8:
    return {400, 1007, invalid, "invalid_utf8"};
  case errc::invalid_field:
    return {400, policy, invalid, "invalid_value"};
  case errc::malformed_http:
    return {400, 1002, invalid, "malformed_http"};
  case errc::wrong_host:
    return {421, policy, invalid, "wrong_host"};
  case errc::foreign_origin:
    return {403, policy, "permission_error", "foreign_origin"};
  case errc::unauthorized:
    return {401, policy, "authentication_error", "invalid_api_key"};
  case errc::not_admin:
    return {403, policy, "permission_error", "not_admin"};
  case errc::unknown_route:
    return {404, policy, "not_found_error", "unknown_route"};
  case errc::method_not_allowed:
    return {405, policy, invalid, "method_not_allowed"};
  case errc::not_offered:
    return {403, policy, "permission_error", "not_offered"};
  case errc::content_coding:
    return {415, policy, invalid, "unsupported_content_encoding"};
  case errc::body_too_large:
    return {413, 1009, invalid, "body_too_large"};
  case errc::head_too_large:
    return {431, 1009, invalid, "header_too_large"};
  case errc::request_timeout:
    return {408, policy, "timeout_error", "request_timeout"};
  case errc::busy:
    return {503, again_later, unavailable, "busy", 1};
  case errc::too_many_sockets:
    return {429, again_later, "rate_limit_error", "too_many_connections", 1};
  case errc::upgrade_refused:
    return {400, 1002, invalid, "bad_handshake"};
  case errc::upgrade_required:
    return {426, 1002, invalid, "upgrade_required"};
  case errc::binary_frame:
    return {400, 1003, invalid, "binary_frame"};
  case errc::frame_too_large:
    return {413, 1009, invalid, "frame_too_large"};
  case errc::unknown_response:
    return {400, policy, invalid, "previous_response_not_found"};
  case errc::no_such_response:
    return {404, policy, "not_found_error", "response_not_found"};
  case errc::unknown_stream:
    return {400, policy, invalid, "nothing_running"};
  case errc::unknown_file:
    return {404, policy, "not_found_error", "file_not_found"};
  case errc::unknown_batch:
    return {404, policy, "not_found_error", "batch_not_found"};
  case errc::conflict:
    return {409, policy, invalid, "conflict"};
  case errc::storage_full:
    return {507, again_later, unavailable, "storage_full"};
  case errc::batch_limit:
    return {429, again_later, "rate_limit_error", "batch_limit_reached", 1};
  case errc::stream_limit:
    return {429, policy, "rate_limit_error", "websocket_stream_limit_reached", 1};
  }
  TWILL_ASSERT(false, "net::errc without a row");
}

wire_error map_error(actors::errc code) {
  using actors::errc;
  const std::string_view word = actors::word_of(code);
  switch (code) {
  case errc::invalid_argument:
    return {400, policy, invalid, word};
  case errc::context_too_long:
    return {400, policy, invalid, word};
  case errc::unknown_model:
    return {404, policy, "not_found_error", word};
  case errc::empty_prompt:
    return {400, policy, invalid, word};
  case errc::no_chat_template:
    return {400, policy, invalid, word};
  case errc::template_failed:
    return {400, policy, invalid, word};
  case errc::grammar_refused:
    return {400, policy, invalid, word};
  case errc::queue_full:
    return {429, again_later, "rate_limit_error", word, 1};
  case errc::rate_limited:
    return {429, again_later, "rate_limit_error", word, 1};
  case errc::queue_timed_out:
    return {503, again_later, unavailable, word, 1};
  case errc::too_large:
    return {400, policy, invalid, word};
  case errc::not_ready:
    return {503, again_later, unavailable, word, 1};
  case errc::shutting_down:
    return {503, going_away, unavailable, word, 1};
  case errc::timed_out:
    return {408, policy, "timeout_error", word};
  case errc::executor_failed:
    return {500, internal, "server_error", word};
  case errc::slow_reader:
    return {408, policy, "timeout_error", word};
  case errc::not_stored:
    return {507, again_later, unavailable, word};
  case errc::cancelled:
    return {409, policy, invalid, word};
  case errc::interrupted:
    return {503, going_away, unavailable, word, 1};
  case errc::model_changed:
    return {500, internal, "server_error", word};
  }
  TWILL_ASSERT(false, "actors::errc without a row");
}

wire_error map_error(const api_error& error) {
  auto wire = std::visit([](auto code) { return map_error(code); }, error.code);
  if (error.retry_after_s > 0) wire.retry_after_s = error.retry_after_s;
  return wire;
}

api_error output_is_full() {
  return {errc::busy,
          "clients leave too much output unread (`server.max_output`); retry in a moment", ""};
}

api_error input_is_full() {
  return {errc::busy,
          "too many request bodies and messages of all clients are being received; retry later",
          ""};
}

void append_error_object(std::string& out, const api_error& error) {
  const auto wire = map_error(error);
  json_writer json(out);
  json.begin_object().field("message", error.message).field("type", wire.type);
  if (error.param.empty())
    json.field("param", nullptr);
  else
    json.field("param", error.param);
  json.field("code", wire.code).end_object();
}

std::string error_body(const api_error& error) {
  std::string out = "{\"error\":";
  append_error_object(out, error);
  out += '}';
  return out;
}

api_error unknown_key() {
  return {errc::unauthorized,
          "a known API key is needed: send it as the header `Authorization: Bearer KEY`", ""};
}

} // namespace twill::net
