// Appends status lines, headers and chunk framing of HTTP/1.1 (RFC 9112) to a string. The functions
// are pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "net/http/http_types.hpp"

namespace twill::net {

/// How to frame the reply to a request; determined by the request.
struct reply_framing {
  std::string request_id;
  bool keep_alive = true;
  bool http_1_0 = false;
  bool head_only = false;              ///< the request is HEAD: send headers without the body
  std::string cors_origin;             ///< of the page that may read the reply; empty: none
  api_style style = api_style::openai; ///< the API whose form errors have
};

/// Appends a whole reply with Content-Length.
void append_reply(std::string& out, const http_reply& reply, const reply_framing& how);

/// Appends only the head of a reply whose body of `body_bytes` follows.
void append_reply_head(std::string& out, const http_reply& reply, std::int64_t body_bytes,
                       const reply_framing& how);

/// Appends the head of a stream, which is chunked; for HTTP/1.0 the stream ends when the connection
/// closes.
void append_stream_head(std::string& out, std::string_view content_type, const reply_framing& how);

void append_chunk(std::string& out, std::string_view data);
inline constexpr std::string_view last_chunk = "0\r\n\r\n";

/// Decodes %XX; malformed escapes are left unchanged.
std::string percent_decode(std::string_view text);

} // namespace twill::net
