// operations: what each endpoint for clients is for, in the words of "/routes", "/docs" and
// "/openapi.json". Immutable, any thread.
//
// Endpoints say how a request is answered, operations what it asks and gets. Each endpoint has one;
// a test sees to that.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "net/endpoints.hpp"
#include "net/protocol/field_table.hpp"

namespace twill::net {

enum class reply_form : std::uint8_t {
  json,
  events,         ///< server-sent events
  json_or_events, ///< these with `stream`
  json_or_lines,  ///< JSON, or a line of JSON for each event
  html,
  text,
  bytes,
  refused,   ///< always 403
  websocket, ///< nothing but WebSocket is spoken here
};

struct operation {
  http_method method;
  std::string_view path; ///< as in the endpoint table
  std::string_view section;
  std::string_view summary;
  reply_form reply = reply_form::json;
  field_rows (*body)() = nullptr; ///< the members of a JSON object; none: no body is read
  std::span<const field_row> query = {};
  bool multipart = false; ///< the body is a form, as of an upload
};

std::span<const operation> operations();

/// The path with names in place of stars: "/v1/files/{id}".
std::string path_with_names(std::string_view path);

} // namespace twill::net
