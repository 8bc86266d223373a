// request_reader: bytes of one connection to HTTP requests, within limits. On the session's strand.
//
// Holds the input buffer; what follows a finished request stays in it (pipelining). Bodies being
// received count against a budget that all connections share.
#pragma once

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <optional>

#include "net/beast.hpp"
#include "net/http/http_types.hpp"
#include "net/server_context.hpp"

namespace twill::net {

class request_reader {
public:
  using message = http::request<http::string_body>;
  enum class progress { need_more, want_continue, done, failed };

  explicit request_reader(server_context& context) : context_(context) {}
  ~request_reader() { context_.body_bytes -= counted_body_bytes_; }
  request_reader(const request_reader&) = delete;
  request_reader& operator=(const request_reader&) = delete;

  beast::flat_buffer& input() noexcept { return in_; }
  bool has_input() const noexcept { return in_.size() > 0; }
  bool full() const noexcept;
  /// Part of a request has arrived.
  bool receiving() const noexcept { return parser_.has_value(); }

  /// Parses what is there. `want_continue`: the client waits for "100 Continue" (said once).
  progress advance();
  /// After `done`.
  message take();
  /// After `failed`.
  const api_error& error() const { return error_; }
  void abandon();

private:
  void begin();
  bool count_body();
  progress refuse(api_error error);
  api_error describe_error(error_code error) const;

  server_context& context_;
  beast::flat_buffer in_;
  std::optional<http::request_parser<http::string_body>> parser_;
  api_error error_;
  std::int64_t counted_body_bytes_ = 0;
  bool head_seen_ = false;
};

/// The request as the router sees it, without its body.
http_request describe_request(const request_reader::message& message);

} // namespace twill::net
