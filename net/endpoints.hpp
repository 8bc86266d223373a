// endpoints: the one table of what this server answers to clients, and the one of what it answers
// to administrators. The HTTP router, WebSocket handshakes and batches all read them.
//
// Immutable, any thread. A path with "*" stands for every path that has one non-empty segment
// there; "**" stands for one or more segments. Of the rows that have a path the last one counts.
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
/// `small` bodies hold a few fields; `full` bodies may have `server.max_body`.
enum class body_limit : std::uint8_t { small, full };

struct endpoint {
  http_method method;
  std::string_view path;
  /// A handler answers at once or on the worker thread, a codec generates, an opener speaks
  /// WebSocket.
  std::variant<route_handler, codec, dialect_opener> action;
  key_rule key = key_rule::required;
  body_limit body = body_limit::small;
  bool batch = false;                ///< a line of a batch may name it; its action is a codec
  std::size_t star = path.find('*'); ///< where `path` has its first star; npos: nowhere
};

/// What clients may ask for at this door.
std::span<const endpoint> endpoints(listener_kind listener = listener_kind::clients);

struct endpoint_match {
  const endpoint* target = nullptr; ///< nullptr: no endpoint has this path and method
  std::string wildcard;             ///< what "*" or "**" stands for
  std::string allow;                ///< the path's methods, comma-separated; empty: unknown path
};
endpoint_match match_endpoint(std::string_view method, std::string_view path,
                              listener_kind listener = listener_kind::clients);

/// The codec of a path that a batch may name; nullptr for any other path.
codec find_batch_codec(std::string_view path);
/// The paths that a batch may name, for messages: "/a, /b or /c".
std::string batch_paths();

std::int64_t max_body_bytes(const endpoint& target, const config::server_options& limits);

} // namespace twill::net
