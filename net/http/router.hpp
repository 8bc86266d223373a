// router: which endpoint a request asks for, whether it may, and its answer. Without I/O.
//
// Called on session strands; touches only the context, which is thread-safe. admit() needs no more
// than the head of a request, so that a body is read only for a client that may send it.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "net/endpoints.hpp"
#include "net/http/http_types.hpp"
#include "net/server_context.hpp"

namespace twill::net {

/// What the head of a request has decided.
struct admission {
  const endpoint* target = nullptr;
  std::string wildcard;
  api_keys::holder holder; ///< whose request it is; empty where no key is needed
  std::int64_t max_body_bytes = 0;
};

/// Takes a request by its head, or answers it: wrong host, foreign page, unknown path, wrong
/// method, no key, a preflight.
std::variant<admission, http_reply> admit(const http_request& head, const server_context& context);

/// The web page that may read the reply (Access-Control-Allow-Origin); empty: none but our own.
std::string readable_by(const http_request& head, const server_context& context);

/// Answers a whole request that was admitted.
http_answer respond(const admission& admitted, http_request request, server_context& context);

/// Takes a WebSocket handshake: its host, origin, path and key must be right.
result<admission> admit_websocket(const http_request& head, const server_context& context);

} // namespace twill::net
