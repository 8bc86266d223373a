// replies: the replies of the null server (server.hpp), which runs no model, in each backend's
// format. They are made once per request. The functions are pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace twill::bench {

/// The values that a null reply needs from a request.
struct null_request {
  std::int64_t input_tokens = 0; ///< the number of ids, or a quarter of the bytes of a text
  std::int64_t output_tokens = 16;
  bool stream = true;
  std::string lane; ///< for WebSocket: the stream id that every event carries
};

/// `target` is the path that the request was sent to.
null_request read_null_request(std::string_view target, std::string_view body);

/// The events of one generation: with SSE framing over HTTP, one message each over WebSocket.
struct null_replies {
  std::string token; ///< the event of every token but the last
  /// The event of the last token. It differs from `token` where it has to contain the end.
  std::string last;
  std::string end;   ///< finish reason and usage; may be empty
  std::string whole; ///< the reply to a request that does not stream
};
null_replies null_replies_for(std::string_view target, const null_request& request);

bool known_null_route(std::string_view target);

} // namespace twill::bench
