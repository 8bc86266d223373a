#include "net/http/request_reader.hpp"

#include <algorithm>
#include <utility>

#include "net/http/reply_head.hpp"
#include "net/random_id.hpp"

namespace twill::net {
namespace {

constexpr std::size_t max_pipelined_bytes = 64 * 1024;
constexpr std::uint32_t max_head_bytes = 32 * 1024;
constexpr std::int64_t bodies_in_budget = 16; ///< as many of the largest size, over all sockets

} // namespace

bool request_reader::full() const noexcept {
  return in_.size() >= max_pipelined_bytes;
}

void request_reader::begin() {
  head_seen_ = false;
  parser_.emplace();
  parser_->eager(true);
  parser_->header_limit(max_head_bytes);
  parser_->body_limit(static_cast<std::uint64_t>(context_.options.server.max_body_bytes));
}

request_reader::progress request_reader::advance() {
  while (in_.size() > 0) {
    if (!parser_.has_value()) begin();
    error_code error;
    const auto used = parser_->put(in_.data(), error);
    in_.consume(used);
    if (error && error != http::error::need_more) return refuse(describe_error(error));
    if (!count_body())
      return refuse(
          {errc::busy, "unread request bodies of all clients must stay within budget", ""});
    if (parser_->is_done()) return progress::done;
    if (parser_->is_header_done() && !std::exchange(head_seen_, true))
      if (beast::iequals(parser_->get()[http::field::expect], "100-continue") && in_.size() == 0)
        return progress::want_continue;
    if (used == 0) break;
  }
  return progress::need_more;
}

bool request_reader::count_body() {
  const auto now = static_cast<std::int64_t>(parser_->get().body().size());
  const auto total = context_.body_bytes += now - counted_body_bytes_;
  counted_body_bytes_ = now;
  return total <= bodies_in_budget * context_.options.server.max_body_bytes;
}

request_reader::progress request_reader::refuse(api_error error) {
  error_ = std::move(error);
  abandon();
  return progress::failed;
}

void request_reader::abandon() {
  parser_.reset();
  context_.body_bytes -= std::exchange(counted_body_bytes_, 0);
}

request_reader::message request_reader::take() {
  auto taken = parser_->release();
  abandon();
  return taken;
}

api_error request_reader::describe_error(error_code error) const {
  if (error == http::error::body_limit)
    return {errc::body_too_large,
            "body must be at most " + std::to_string(context_.options.server.max_body_bytes) +
                " bytes, got more",
            ""};
  if (error == http::error::header_limit || error == http::error::buffer_overflow)
    return {errc::head_too_large,
            "request line and headers must be at most " + std::to_string(max_head_bytes) +
                " bytes, got more",
            ""};
  return {errc::malformed_http, "request must be HTTP/1.1, got " + error.message(), ""};
}

http_request describe_request(const request_reader::message& message) {
  http_request request;
  request.method = std::string(message.method_string());
  const std::string_view target(message.target().data(), message.target().size());
  const auto path_end = target.find('?');
  request.path = percent_decode(target.substr(0, path_end));
  if (path_end != std::string_view::npos) request.query = std::string(target.substr(path_end + 1));
  request.content_type = std::string(message[http::field::content_type]);
  request.authorization = std::string(message[http::field::authorization]);
  const auto id = message["X-Request-Id"];
  const bool usable = !id.empty() && id.size() <= 128 &&
                      std::all_of(id.begin(), id.end(), [](char c) { return c > 32 && c < 127; });
  request.request_id = usable ? std::string(id) : make_id("req_");
  return request;
}

} // namespace twill::net
