// A request and a reply as the router sees them: no sockets, no Beast. Plain values.
#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "net/connection/client_origin.hpp"
#include "net/protocol/api_style.hpp"
#include "net/protocol/codec.hpp"

namespace twill::net {

struct http_request {
  listener_kind listener = listener_kind::clients; ///< where the client came in
  api_style style = api_style::openai;
  std::string method;
  std::string path;  ///< without the query, percent-decoded
  std::string query; ///< as it came, without the "?"
  std::string host;
  std::string origin; ///< empty unless a browser (or a client that acts like one) sent it
  std::string content_type;
  std::string content_encoding; ///< all lines joined by commas
  std::string authorization;
  std::string api_key;           ///< X-Api-Key
  std::string subprotocols;      ///< Sec-WebSocket-Protocol
  std::string preflight_headers; ///< Access-Control-Request-Headers
  std::string forwarded_for;     ///< X-Forwarded-For, all lines joined by commas
  std::string last_event_id;     ///< Last-Event-ID: of the last event that a stream has brought
  std::string if_none_match;     ///< If-None-Match: what a browser still has
  std::string request_id;        ///< the client's X-Request-Id, or a fresh one
  std::string traceparent;       ///< W3C Trace Context, as it came
  std::string body;
};

struct http_reply {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;
  /// What `status` and `body` say in OpenAI's form; a client of another API gets it in that one's.
  std::shared_ptr<const api_error> error;
};

/// A reply whose body is read as the client takes it.
struct file_reply {
  std::shared_ptr<std::istream> source;
  std::int64_t bytes = 0;
  std::string content_type = "application/octet-stream";
};

/// A reply that takes long to compute: to be run on a worker thread.
struct slow_reply {
  std::function<http_reply()> run;
  std::int64_t bytes = 0; ///< that it works on beside the request's body
};
/// As slow_reply, of what may be a call.
struct slow_call {
  std::function<std::variant<http_reply, call>()> run;
  std::int64_t bytes = 0;
};

using http_answer = std::variant<http_reply, slow_reply, file_reply, call, slow_call>;

http_reply error_reply(const api_error& error);
api_error body_too_large(std::int64_t max_body_bytes);

} // namespace twill::net
