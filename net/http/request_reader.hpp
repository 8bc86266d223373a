// request_reader: bytes of one connection to HTTP/1.1 requests, within limits (RFC 9112). On the
// session's strand.
//
// A head is handed out before its body is read, so that the session can refuse a request without
// taking its body. What is framed in a way that two readers could understand differently is a
// fault; trailers never become headers. The input buffer is held here; what follows a finished
// request stays in it (pipelining). Bodies being received count against a budget that all
// connections share.
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
  /// How others learn that the body is to be given up, for want of room; see input_budget.
  void on_give_up(std::function<void()> call) { counted_.on_give_up(std::move(call)); }
  /// The body that is being received is to be given up.
  bool must_give_up() const { return counted_.is_cut(); }
  bool full() const noexcept;
  /// Part of a request has arrived.
  bool receiving() const noexcept { return parser_.has_value(); }
  /// advance() may get further without more bytes.
  bool has_work() const noexcept;

  /// Parses what is there, up to the end of a head or of a whole request. One empty line before a
  /// request is skipped (RFC 9112, section 2.2).
  progress advance();
  /// After `head` and until take() or abandon().
  const message& head() const { return parser_->get(); }
  /// After `head`: the body's length where the head tells it, 0 for no body.
  std::optional<std::uint64_t> body_length() const;
  /// After `head`, before advance(): the largest body that is accepted.
  void accept_body(std::int64_t max_bytes);
  /// After `head`, before advance(): the body is read, but not kept.
  void drop_body(std::int64_t max_bytes);
  std::int64_t body_bytes() const noexcept { return body_bytes_; }
  /// After `whole`.
  message take();
  /// After `failed`.
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
  std::int64_t body_bytes_ = 0; ///< of the body so far
  input_budget::account counted_;
  std::int64_t max_body_bytes_ = 0;
  bool head_seen_ = false;
  bool drops_body_ = false;
  bool skipped_line_ = false; ///< the empty line before the request to come
};

/// A head as the router sees it.
http_request describe_request(const request_reader::message& head);

} // namespace twill::net
