// router: finds the endpoint of a request, checks whether the client may use it, and computes the
// reply. No I/O.
//
// Called on the strand of the client's connection; respond() may also be called on a worker thread.
// The functions use only the server_context, which is thread-safe. admit() needs only the head of a
// request, so that a body is read only from a client that may send it.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "net/endpoints.hpp"
#include "net/http/http_types.hpp"
#include "net/server_context.hpp"

namespace twill::net {

/// The result of checking the head of a request.
struct admission {
  const endpoint* target = nullptr;
  std::string wildcard;
  api_keys::holder holder; ///< owner of the request's API key; empty if no key is required
  std::int64_t max_body_bytes = 0;
};

/// Accepts a request by its head, or returns the reply to a request that is not accepted (wrong
/// host, foreign web page, unknown path, wrong method, no key) or that is a CORS preflight.
std::variant<admission, http_reply> admit(const http_request& head, const server_context& context);

/// The origin of the web page that may read the reply (Access-Control-Allow-Origin). Empty: only
/// pages of this server may.
std::string readable_by(const http_request& head, const server_context& context);

/// Computes the reply to a whole request that admit() accepted.
http_answer respond(const admission& admitted, http_request request, server_context& context);

/// Accepts a WebSocket handshake if its host, origin, path and key are valid.
result<admission> admit_websocket(const http_request& head, const server_context& context);

} // namespace twill::net
