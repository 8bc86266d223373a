// The request and reply types of the router, without sockets and without Beast. Plain values.
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
  listener_kind listener = listener_kind::clients; ///< the listener that accepted the connection
  api_style style = api_style::openai;
  std::string method;
  std::string path;  ///< without the query, percent-decoded
  std::string query; ///< not decoded, without the "?"
  std::string host;
  std::string origin; ///< empty unless the client is a browser or acts like one
  std::string content_type;
  std::string content_encoding; ///< all lines joined by commas
  std::string authorization;
  std::string api_key;           ///< X-Api-Key
  std::string subprotocols;      ///< Sec-WebSocket-Protocol
  std::string preflight_headers; ///< Access-Control-Request-Headers
  std::string forwarded_for;     ///< X-Forwarded-For, all lines joined by commas
  std::string last_event_id;     ///< Last-Event-ID: the last event that the client received
  std::string if_none_match;     ///< If-None-Match: tag of the file that a browser has cached
  std::string request_id;        ///< the client's X-Request-Id, or a generated one
  std::string traceparent;       ///< traceparent header of W3C Trace Context, unchanged
  std::string body;
};

struct http_reply {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;
  /// Set if the reply reports an error. `status` and `body` then have OpenAI's form; from `error`
  /// the same reply is made in the form of another API.
  std::shared_ptr<const api_error> error;
};

/// A reply whose body is read from `source` piece by piece, as fast as the client takes it.
struct file_reply {
  std::shared_ptr<std::istream> source;
  std::int64_t bytes = 0;
  std::string content_type = "application/octet-stream";
};

/// A reply that takes long to compute; `run` is called on a worker thread.
struct slow_reply {
  std::function<http_reply()> run;
  std::int64_t bytes = 0; ///< bytes that `run` works on in addition to the request's body
};
/// Like slow_reply, but `run` may also return a call.
struct slow_call {
  std::function<std::variant<http_reply, call>()> run;
  std::int64_t bytes = 0;
};

using http_answer = std::variant<http_reply, slow_reply, file_reply, call, slow_call>;

http_reply error_reply(const api_error& error);
api_error body_too_large(std::int64_t max_body_bytes);

} // namespace twill::net
