// error_map: the one place that turns an error code into what the wire shows.
//
// Pure functions, any thread. Every enumerator of both error enums has a row; a missing one does
// not compile without a warning and stops the process when reached.
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
  int retry_after_s = 0;           ///< > 0: worth trying again after so many seconds
};

wire_error map_error(errc code);
wire_error map_error(actors::errc code);
wire_error map_error(const api_error& error);

/// {"message":...,"type":...,"param":...,"code":...}: OpenAI's error object.
void append_error_object(std::string& out, const api_error& error);

/// {"error":{...}}: an HTTP body.
std::string error_body(const api_error& error);

/// A request is refused because the unread output of all clients together is too much.
api_error output_is_full();
/// The error of a client whose body or WebSocket message finds no room, or is dropped for others.
api_error input_is_full();
/// No key was given, or one that is not known (any more).
api_error unknown_key();

} // namespace twill::net
