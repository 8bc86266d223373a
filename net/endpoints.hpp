// endpoints: the table of all endpoints that this server offers to clients, and the table of those
// that it offers to administrators. The HTTP router, WebSocket handshakes and batches all read
// these tables.
//
// The tables are immutable, so any thread may read them. In a path, "*" stands for exactly one
// non-empty segment and "**" for one or more segments. If several rows match a path, the last of
// them counts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "config/options.hpp"
#include "net/http/request_scope.hpp"
#include "net/protocol/codec.hpp"
#include "net/protocol/dialect.hpp"

namespace twill::net {

/// A GET endpoint answers HEAD as well.
enum class http_method : std::uint8_t { get, post, del };
std::string_view name_of(http_method method);
enum class key_rule : std::uint8_t { required, open };
/// The maximum body size of an endpoint: `small` is enough for a few fields, `full` is
/// `server.max_body`.
enum class body_limit : std::uint8_t { small, full };

struct endpoint {
  http_method method;
  std::string_view path;
  /// What the endpoint does: a route_handler answers at once or on the worker thread, a codec
  /// parses the body into a call that generates output, and a dialect_opener opens a WebSocket.
  std::variant<route_handler, codec, dialect_opener> action;
  key_rule key = key_rule::required;
  body_limit body = body_limit::small;
  bool batch = false;                ///< a line of a batch may name this endpoint; `action` is then
                                     ///< a codec
  std::size_t star = path.find('*'); ///< index of the first star in `path`; npos: `path` has none
};

/// The endpoints that clients of this listener may request.
std::span<const endpoint> endpoints(listener_kind listener = listener_kind::clients);

struct endpoint_match {
  const endpoint* target = nullptr; ///< nullptr: no endpoint has this path and method
  std::string wildcard;             ///< the part of the path that "*" or "**" stands for
  std::string allow;                ///< the methods of the path, comma-separated; empty: the path
                                    ///< is unknown
};
endpoint_match match_endpoint(std::string_view method, std::string_view path,
                              listener_kind listener = listener_kind::clients);

/// The codec of a path that a line of a batch may name; nullptr for any other path.
codec find_batch_codec(std::string_view path);
/// The paths that a line of a batch may name, as messages show them: "/a, /b or /c".
std::string batch_paths();

std::int64_t max_body_bytes(const endpoint& target, const config::server_options& limits);

} // namespace twill::net
