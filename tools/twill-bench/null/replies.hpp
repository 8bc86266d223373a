// replies: what the null server says in each backend's format, made once per request. Pure
// functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace twill::bench {

/// What a request asked for.
struct null_request {
  std::int64_t input_tokens = 0; ///< ids as they are; of a text a quarter of its bytes
  std::int64_t output_tokens = 16;
  bool stream = true;
  std::string lane; ///< WebSocket: the id that every event carries
};

/// `target` is the path it was sent to.
null_request read_null_request(std::string_view target, std::string_view body);

/// Events of one generation: over HTTP with the framing of SSE, over WebSocket one message each.
struct null_replies {
  std::string token; ///< of every token but the last
  std::string last;  ///< the last token, where it has to bring the end with it; else like `token`
  std::string end;   ///< finish reason and usage; may be empty
  std::string whole; ///< the reply to a request that does not stream
};
null_replies null_replies_for(std::string_view target, const null_request& request);

bool known_null_route(std::string_view target);

} // namespace twill::bench
