// api_error: the error that a client receives when its request is refused or fails. An api_error is
// a plain value, and any thread may use it.
//
// `errc` lists the errors that net/ itself detects; errors of the engine keep their actors::errc
// code. Only net/error_map.cpp decides which HTTP status, WebSocket close code and type string a
// code becomes.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "actors/port/engine_port.hpp"
#include "config/base/breach.hpp"
#include "config/base/result.hpp"

namespace twill::net {

enum class errc {
  bad_json,           ///< the body or frame is not JSON
  bad_utf8,           ///< the body or frame is not UTF-8
  invalid_field,      ///< a field breaks its rule; `param` names it
  malformed_http,     ///< the bytes are not a well-formed HTTP/1.1 request
  wrong_host,         ///< the Host header names another server
  foreign_origin,     ///< the Origin header names a web page that server.cors_origins does not list
  unauthorized,       ///< the request has no API key, or an unknown one
  not_admin,          ///< the tenant of the key is not an administrator
  unknown_route,      ///< nothing is served at this path
  method_not_allowed, ///< the path is served, but not with this method
  not_offered,        ///< an endpoint of another server's API that this server will never implement
  content_coding,     ///< the body is compressed
  body_too_large,     ///< the body is larger than its endpoint accepts
  head_too_large,     ///< request line and headers are larger than the limit
  request_timeout,    ///< the head or the body came too slowly
  busy,               ///< the budget for bodies being received, or for unread output, is used up
  too_many_sockets,   ///< server.max_per_address is reached
  upgrade_refused,    ///< a WebSocket handshake is incomplete or names another path
  upgrade_required,   ///< the path accepts only WebSocket handshakes
  binary_frame,       ///< a WebSocket frame is binary; only text frames are accepted
  frame_too_large,    ///< a WebSocket message is larger than server.max_frame
  unknown_response,   ///< previous_response_id names no response that the server remembers
  no_such_response,   ///< this tenant has no such stored response
  unknown_stream,     ///< no stream runs under this id or in this lane
  unknown_file,       ///< this tenant has no such file
  unknown_batch,      ///< this tenant has no such batch
  conflict,           ///< the file or batch is in a state that does not allow the operation
  storage_full, ///< batches.max_folder or responses.max_folder is reached, or the disk is full
  batch_limit,  ///< there are too many batches or files
  stream_limit, ///< server.max_streams_per_socket is reached, or a lane's queue is full
};

struct api_error {
  std::variant<errc, actors::errc> code;
  std::string message;            ///< one sentence; for a field "`field` must be ..., got ..."
  std::string param;              ///< the field at fault, or empty
  std::int32_t retry_after_s = 0; ///< > 0: seconds until a retry may succeed; 0: error_map's
                                  ///< default for the code

  static api_error of(const breach& found) {
    return {errc::invalid_field, text_of(found), found.field};
  }
};

template <class T>
using result = twill::result<T, api_error>;

/// The failure alternative of `result`.
inline failure<api_error> fail(api_error error) {
  return {std::move(error), {}};
}

inline api_error from_engine(actors::request_error error) {
  return {error.code, std::move(error.message), std::move(error.param), error.retry_after_s};
}

/// If `detail` begins with "`field` must be ...", then `field` becomes the error's `param`.
inline api_error from_engine(actors::errc code, std::string detail) {
  std::string param;
  if (detail.size() > 2 && detail.front() == '`')
    if (const auto end = detail.find('`', 1); end != std::string::npos)
      param = detail.substr(1, end - 1);
  return {code, std::move(detail), std::move(param)};
}

} // namespace twill::net
