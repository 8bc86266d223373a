#include "net/http/reply_head.hpp"

#include <charconv>

#include "net/error_map.hpp"

namespace twill::net {
namespace {

std::string_view reason(int status) {
  switch (status) {
  case 200:
    return "OK";
  case 204:
    return "No Content";
  case 304:
    return "Not Modified";
  case 400:
    return "Bad Request";
  case 401:
    return "Unauthorized";
  case 403:
    return "Forbidden";
  case 404:
    return "Not Found";
  case 405:
    return "Method Not Allowed";
  case 408:
    return "Request Timeout";
  case 409:
    return "Conflict";
  case 413:
    return "Content Too Large";
  case 415:
    return "Unsupported Media Type";
  case 421:
    return "Misdirected Request";
  case 422:
    return "Unprocessable Content";
  case 424:
    return "Failed Dependency";
  case 426:
    return "Upgrade Required";
  case 429:
    return "Too Many Requests";
  case 431:
    return "Request Header Fields Too Large";
  case 503:
    return "Service Unavailable";
  case 507:
    return "Insufficient Storage";
  default:
    return status < 500 ? "Error" : "Internal Server Error";
  }
}

bool has_body(int status) {
  return status != 204 && status != 304;
}

void append_common(std::string& out, int status, const reply_framing& how) {
  out += "HTTP/1.1 ";
  out += std::to_string(status);
  out += ' ';
  out += reason(status);
  out += "\r\nServer: twill\r\nX-Request-Id: ";
  out += how.request_id;
  if (how.style == api_style::anthropic) { // the header that Anthropic's SDKs read
    out += "\r\nrequest-id: ";
    out += how.request_id;
  }
  if (!how.cors_origin.empty()) {
    out += "\r\nAccess-Control-Allow-Origin: ";
    out += how.cors_origin;
    out +=
        "\r\nAccess-Control-Expose-Headers: x-request-id, request-id, retry-after\r\nVary: Origin";
  }
  out += how.keep_alive ? "\r\nConnection: keep-alive\r\n" : "\r\nConnection: close\r\n";
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

} // namespace

http_reply error_reply(const api_error& error) {
  const auto wire = map_error(error);
  http_reply reply;
  reply.status = wire.http_status;
  reply.body = error_body(error);
  reply.error = std::make_shared<const api_error>(error);
  if (wire.retry_after_s > 0)
    reply.headers.emplace_back("Retry-After", std::to_string(wire.retry_after_s));
  if (wire.http_status == 401) reply.headers.emplace_back("WWW-Authenticate", "Bearer");
  if (wire.http_status == 415) reply.headers.emplace_back("Accept-Encoding", "identity");
  if (wire.http_status == 426) reply.headers.emplace_back("Upgrade", "websocket");
  return reply;
}

api_error body_too_large(std::int64_t max_body_bytes) {
  return {errc::body_too_large,
          "body must be at most " + std::to_string(max_body_bytes) + " bytes, got more", ""};
}

void append_reply_head(std::string& out, const http_reply& reply, std::int64_t body_bytes,
                       const reply_framing& how) {
  append_common(out, reply.status, how);
  for (const auto& [name, text] : reply.headers) {
    out += name;
    out += ": ";
    out += text;
    out += "\r\n";
  }
  if (has_body(reply.status)) {
    out += "Content-Type: ";
    out += reply.content_type;
    out += "\r\nContent-Length: ";
    out += std::to_string(body_bytes);
    out += "\r\n";
  }
  out += "\r\n";
}

void append_reply(std::string& out, const http_reply& reply, const reply_framing& how) {
  if (reply.error != nullptr && how.style != api_style::openai) {
    auto styled = style_error(*reply.error, how.style, how.request_id);
    http_reply theirs{styled.http_status, std::move(styled.body), reply.content_type,
                      reply.headers};
    return append_reply(out, theirs, how);
  }
  out.reserve(out.size() + reply.body.size() + 320);
  append_reply_head(out, reply, static_cast<std::int64_t>(reply.body.size()), how);
  if (!how.head_only && has_body(reply.status)) out += reply.body;
}

void append_stream_head(std::string& out, std::string_view content_type, const reply_framing& how) {
  append_common(out, 200, how);
  out += "Content-Type: ";
  out += content_type;
  out += "\r\nCache-Control: no-cache\r\nX-Accel-Buffering: no\r\n";
  if (!how.http_1_0) out += "Transfer-Encoding: chunked\r\n";
  out += "\r\n";
}

void append_chunk(std::string& out, std::string_view data) {
  if (data.empty()) return; // an empty chunk would end the stream
  char size[16];
  const auto end = std::to_chars(size, size + sizeof size, data.size(), 16).ptr;
  out.append(size, end);
  out += "\r\n";
  out += data;
  out += "\r\n";
}

std::string percent_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      const int high = hex_digit(text[i + 1]);
      const int low = hex_digit(text[i + 2]);
      if (high >= 0 && low >= 0) {
        out += static_cast<char>(high * 16 + low);
        i += 2;
        continue;
      }
    }
    out += text[i];
  }
  return out;
}

} // namespace twill::net
