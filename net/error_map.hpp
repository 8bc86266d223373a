// error_map: the only place that turns an error code into the status, close code and strings that
// clients see.
//
// Pure functions, which any thread may call. Every enumerator of net's errc and of actors::errc has
// a row. A missing row causes a compiler warning, and stops the process if it is reached.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "net/api_error.hpp"

namespace twill::net {

struct wire_error {
  int http_status = 500;
  std::uint16_t close_code = 1011; ///< WebSocket, RFC 6455 section 7.4.1
  std::string_view type;           ///< stable, for programs: "invalid_request_error", ...
  std::string_view code;           ///< stable and finer: "model_not_found", ...
  int retry_after_s = 0;           ///< > 0: the client may retry after this many seconds
};

wire_error map_error(errc code);
wire_error map_error(actors::errc code);
wire_error map_error(const api_error& error);

/// {"message":...,"type":...,"param":...,"code":...}: OpenAI's error object.
void append_error_object(std::string& out, const api_error& error);

/// {"error":{...}}: an HTTP body.
std::string error_body(const api_error& error);

/// The error of a request that is refused because the unread output of all clients exceeds its
/// limit (output_budget).
api_error output_is_full();
/// The error of a client whose body or WebSocket message exceeds the memory for messages being
/// received (input_budget), or is dropped to make room for other clients.
api_error input_is_full();
/// The error of a request that has no key, or a key that is unknown or no longer valid.
api_error unknown_key();

} // namespace twill::net
