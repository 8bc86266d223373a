// request_reader: parses the bytes of one connection into HTTP/1.1 requests, within limits (RFC
// 9112). Used on the session's strand.
//
// advance() reports a head before the body is read, so that the session can refuse a request
// without receiving its body. A request whose framing two readers could interpret differently is an
// error. Trailers are never treated as headers. The reader owns the input buffer; bytes after a
// finished request stay in the buffer (pipelining). Bodies being received count against a budget
// that all connections share.
#pragma once

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "net/beast.hpp"
#include "net/http/http_types.hpp"
#include "net/server_context.hpp"

namespace twill::net {

class request_reader {
public:
  using message = http::request<http::string_body>;
  enum class progress { need_more, head, whole, failed };

  explicit request_reader(server_context& context) : context_(context), counted_(context.input) {}
  request_reader(const request_reader&) = delete;
  request_reader& operator=(const request_reader&) = delete;

  beast::flat_buffer& input() noexcept { return in_; }
  /// Sets the function that other connections call when they need the memory of this body; see
  /// input_budget.
  void on_give_up(std::function<void()> call) { counted_.on_give_up(std::move(call)); }
  /// True if the body being received must be abandoned, because other connections need its memory.
  bool must_give_up() const { return counted_.is_cut(); }
  bool full() const noexcept;
  /// True if part of a request has arrived.
  bool receiving() const noexcept { return parser_.has_value(); }
  /// True if advance() may make progress without further bytes.
  bool has_work() const noexcept;

  /// Parses the buffered bytes, up to the end of a head or of a whole request. Skips one empty line
  /// before a request (RFC 9112, section 2.2).
  progress advance();
  /// The parsed head. Valid after `head`, until take() or abandon().
  const message& head() const { return parser_->get(); }
  /// Call this after advance() has returned `head`. Returns the length of the body if the head
  /// states it, 0 if there is no body, else nullopt.
  std::optional<std::uint64_t> body_length() const;
  /// After `head`, before the next advance(): accepts a body of at most `max_bytes`.
  void accept_body(std::int64_t max_bytes);
  /// After `head`, before the next advance(): reads a body of at most `max_bytes` and discards it.
  void drop_body(std::int64_t max_bytes);
  std::int64_t body_bytes() const noexcept { return body_bytes_; }
  /// After `whole`: returns the request.
  message take();
  /// After `failed`: the error.
  const api_error& error() const { return error_; }
  void abandon();

private:
  bool at_request();
  void begin();
  bool count_body();
  progress refuse(api_error error);
  api_error describe_error(error_code error) const;

  server_context& context_;
  beast::flat_buffer in_;
  std::optional<http::request_parser<http::string_body>> parser_;
  api_error error_;
  std::int64_t body_bytes_ = 0; ///< bytes of the current body received so far
  input_budget::account counted_;
  std::int64_t max_body_bytes_ = 0;
  bool head_seen_ = false;
  bool drops_body_ = false;
  bool skipped_line_ = false; ///< the empty line before the next request has been skipped
};

/// Converts a parsed head to the router's request type.
http_request describe_request(const request_reader::message& head);

} // namespace twill::net
