// operations: describes each endpoint for clients, for "/routes", "/docs" and "/openapi.json". The
// table is constant, and any thread may read it.
//
// The table of endpoints contains the handlers; the table of operations describes requests and
// replies. A test checks that every endpoint has an operation.
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
  json_or_events, ///< JSON, or server-sent events if the request sets `stream`
  json_or_lines,  ///< one JSON object, or one line of JSON for each event
  html,
  text,
  bytes,
  refused,   ///< the reply is always 403
  websocket, ///< only WebSocket is served at this path
};

struct operation {
  http_method method;
  std::string_view path; ///< as in the endpoint table
  std::string_view section;
  std::string_view summary;
  reply_form reply = reply_form::json;
  field_rows (*body)() = nullptr; ///< rows of the members of the JSON body; null: no body is read
  std::span<const field_row> query = {};
  bool multipart = false; ///< the body is multipart/form-data, as for an upload
};

std::span<const operation> operations();

/// Replaces each "*" of an endpoint's path by a name: "/v1/files/{id}".
std::string path_with_names(std::string_view path);

} // namespace twill::net
