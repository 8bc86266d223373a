// api_error: what a client is told when its request is refused or fails. Plain values, any thread.
//
// `errc` holds the faults net/ finds itself; faults of the engine keep actors::errc. Which status,
// close code and type string each becomes is decided in net/error_map.cpp alone.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "actors/port/engine_port.hpp"
#include "config/base/result.hpp"

namespace twill::net {

enum class errc {
  bad_json,           ///< the body or frame is no JSON text
  bad_utf8,           ///< the body or frame is no UTF-8
  invalid_field,      ///< a field breaks its rule; `param` names it
  malformed_http,     ///< the bytes are no HTTP/1.1 request
  unauthorized,       ///< no API key, or a wrong one
  unknown_route,      ///< no such path
  method_not_allowed, ///< the path knows other methods
  body_too_large,     ///< request body over server.max_body_bytes
  head_too_large,     ///< request line and headers over the limit
  request_timeout,    ///< the request did not arrive whole in time
  busy,               ///< unread request bodies fill their memory budget
  upgrade_refused,    ///< a WebSocket handshake that is incomplete or on another path
  upgrade_required,   ///< the path speaks WebSocket only
  binary_frame,       ///< WebSocket frames must be text
  frame_too_large,    ///< WebSocket message over server.max_frame_bytes
  unknown_response,   ///< previous_response_id names nothing that is remembered
  unknown_stream,     ///< the id or lane has nothing running
  unknown_file,       ///< no such file of this tenant
  unknown_batch,      ///< no such batch of this tenant
  conflict,           ///< the state of a file or batch does not allow it
  storage_full,       ///< batches.max_folder reached, or the disk is full
  batch_limit,        ///< too many batches or files
  stream_limit,       ///< server.max_streams_per_socket reached, or a lane's queue is full
};

struct api_error {
  std::variant<errc, actors::errc> code;
  std::string message; ///< "`field` must be ..., got ..."
  std::string param;   ///< field at fault, or empty
};

template <class T>
using result = twill::result<T, api_error>;

/// The failure alternative of net's result.
inline failure<api_error> fail(api_error error) {
  return {std::move(error), {}};
}

inline api_error from_engine(actors::request_error error) {
  return {error.code, std::move(error.message), std::move(error.param)};
}

/// The engine's results say "`field` must be ..."; the field becomes `param`.
inline api_error from_engine(actors::errc code, std::string detail) {
  std::string param;
  if (detail.size() > 2 && detail.front() == '`')
    if (const auto end = detail.find('`', 1); end != std::string::npos)
      param = detail.substr(1, end - 1);
  return {code, std::move(detail), std::move(param)};
}

} // namespace twill::net
