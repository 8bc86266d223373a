// api_error: what a client is told when its request is refused or fails. Plain values, any thread.
//
// `errc` holds the faults net/ finds itself; faults of the engine keep actors::errc. Which status,
// close code and type string each becomes is decided in net/error_map.cpp alone.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "actors/port/engine_port.hpp"
#include "config/base/result.hpp"

namespace twill::net {

enum class errc {
  bad_json,           ///< the body or frame is not JSON
  bad_utf8,           ///< the body or frame is not UTF-8
  invalid_field,      ///< a field breaks its rule; `param` names it
  malformed_http,     ///< the bytes are not a well-formed HTTP/1.1 request
  wrong_host,         ///< the Host header names another server
  foreign_origin,     ///< a web page of an origin that server.cors_origins does not list
  unauthorized,       ///< the request has no API key, or an unknown one
  not_admin,          ///< the key's tenant is no administrator
  unknown_route,      ///< nothing is served at this path
  method_not_allowed, ///< the path is served, but not with this method
  not_offered,        ///< another server's API has it, and this one never will
  content_coding,     ///< the body is compressed
  body_too_large,     ///< the body is larger than its endpoint accepts
  head_too_large,     ///< request line and headers are larger than the limit
  request_timeout,    ///< the head or the body came too slowly
  busy,               ///< bodies that are being received, or unread output, fill their budget
  too_many_sockets,   ///< server.max_per_address is reached
  upgrade_refused,    ///< a WebSocket handshake is incomplete or names another path
  upgrade_required,   ///< the path speaks only WebSocket
  binary_frame,       ///< a WebSocket frame is binary; only text is spoken
  frame_too_large,    ///< a WebSocket message is larger than server.max_frame
  unknown_response,   ///< previous_response_id names nothing that is remembered
  no_such_response,   ///< this tenant has no such stored response
  unknown_stream,     ///< nothing runs under this id or in this lane
  unknown_file,       ///< this tenant has no such file
  unknown_batch,      ///< this tenant has no such batch
  conflict,           ///< the state of a file or batch does not allow it
  storage_full, ///< batches.max_folder or responses.max_folder is reached, or the disk is full
  batch_limit,  ///< there are too many batches or files
  stream_limit, ///< server.max_streams_per_socket is reached, or a lane's queue is full
};

struct api_error {
  std::variant<errc, actors::errc> code;
  std::string message;            ///< one sentence; for a field "`field` must be ..., got ..."
  std::string param;              ///< the field at fault, or empty
  std::int32_t retry_after_s = 0; ///< > 0: when a retry may succeed; else what the code says
};

template <class T>
using result = twill::result<T, api_error>;

/// The failure alternative of net's result.
inline failure<api_error> fail(api_error error) {
  return {std::move(error), {}};
}

inline api_error from_engine(actors::request_error error) {
  return {error.code, std::move(error.message), std::move(error.param), error.retry_after_s};
}

/// A message that begins with "`field` must be ..." names the field at fault, which becomes
/// `param`.
inline api_error from_engine(actors::errc code, std::string detail) {
  std::string param;
  if (detail.size() > 2 && detail.front() == '`')
    if (const auto end = detail.find('`', 1); end != std::string::npos)
      param = detail.substr(1, end - 1);
  return {code, std::move(detail), std::move(param)};
}

} // namespace twill::net
