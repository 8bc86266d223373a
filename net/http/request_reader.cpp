#include "net/http/request_reader.hpp"

#include <algorithm>
#include <utility>

#include "net/error_map.hpp"
#include "net/http/reply_head.hpp"
#include "net/random_id.hpp"

namespace twill::net {
namespace {

constexpr std::size_t max_pipelined_bytes = 64 * 1024;
constexpr std::uint32_t max_head_bytes = 32 * 1024;

std::size_t count(const request_reader::message& head, http::field name) {
  const auto range = head.equal_range(name);
  return static_cast<std::size_t>(std::distance(range.first, range.second));
}

/// Returns all lines of a list header, joined by commas.
std::string joined(const request_reader::message& head, beast::string_view name) {
  std::string all;
  const auto lines = head.equal_range(name);
  for (auto line = lines.first; line != lines.second; ++line)
    all.append(all.empty() ? "" : ",").append(line->value());
  return all;
}

/// True if all characters are allowed in a host with a port (RFC 3986, section 3.2).
bool is_host(beast::string_view text) {
  constexpr std::string_view marks = "-._~:%[]!$&'()*+,;=";
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           marks.find(c) != std::string_view::npos;
  });
}

/// Finds framing that Beast accepts but that another reader could interpret as another request.
/// Returns an empty string if there is none.
std::string find_framing_fault(const request_reader::message& head) {
  const auto n_encodings = count(head, http::field::transfer_encoding);
  if (n_encodings > 0) {
    if (head.version() < 11) return "`Transfer-Encoding` is for HTTP/1.1 only";
    if (count(head, http::field::content_length) > 0)
      return "`Content-Length` and `Transfer-Encoding` must not both be given";
    if (n_encodings > 1 || !beast::iequals(head[http::field::transfer_encoding], "chunked"))
      return "`Transfer-Encoding` must be \"chunked\" and nothing else";
  }
  const auto n_hosts = count(head, http::field::host);
  if (n_hosts > 1 || (n_hosts == 0 && head.version() >= 11))
    return "an HTTP/1.1 request must have one `Host` header";
  if (n_hosts > 0 && !is_host(head[http::field::host]))
    return "the `Host` header must be a name or an address, with or without a port";
  // If one of these headers occurs twice, a proxy and this server could use different values.
  for (const auto* name : {"Authorization", "X-Api-Key", "Origin"}) {
    const auto lines = head.equal_range(name);
    if (std::distance(lines.first, lines.second) > 1)
      return "a request must have at most one `" + std::string(name) + "` header";
  }
  return {};
}

} // namespace

bool request_reader::full() const noexcept {
  return in_.size() >= max_pipelined_bytes;
}

bool request_reader::has_work() const noexcept {
  return in_.size() > 0 || (head_seen_ && parser_->is_done());
}

/// True if the buffer contains the beginning of a request. Skips an empty line before it, since
/// some clients send a line end after a body.
bool request_reader::at_request() {
  const std::string_view there(static_cast<const char*>(in_.data().data()), in_.size());
  if (skipped_line_ || there.empty() || there.front() != '\r') return !there.empty();
  if (there.size() == 1) return false;
  if (there[1] != '\n') return true;
  skipped_line_ = true;
  in_.consume(2);
  return in_.size() > 0;
}

void request_reader::begin() {
  head_seen_ = drops_body_ = skipped_line_ = false;
  parser_.emplace();
  parser_->header_limit(max_head_bytes);
  parser_->body_limit(boost::none); // accept_body() sets the limit later
}

request_reader::progress request_reader::advance() {
  if (!parser_.has_value()) {
    if (!at_request()) return progress::need_more;
    begin();
  }
  // Beast compares Content-Length with its limit as soon as the head has been parsed, which is
  // before accept_body() sets the limit of this request. Therefore the length is compared here.
  if (head_seen_ && body_length().value_or(0) > static_cast<std::uint64_t>(max_body_bytes_))
    return refuse(body_too_large(max_body_bytes_));
  while (!(head_seen_ && parser_->is_done()) && in_.size() > 0) {
    error_code error;
    const auto used = parser_->put(in_.data(), error);
    in_.consume(used);
    if (error && error != http::error::need_more) return refuse(describe_error(error));
    if (parser_->is_header_done() && !std::exchange(head_seen_, true)) {
      if (auto fault = find_framing_fault(head()); !fault.empty())
        return refuse({errc::malformed_http, std::move(fault), ""});
      parser_->eager(true);
      return progress::head;
    }
    if (!count_body()) return refuse(input_is_full());
    if (used == 0) break;
  }
  return head_seen_ && parser_->is_done() ? progress::whole : progress::need_more;
}

std::optional<std::uint64_t> request_reader::body_length() const {
  if (parser_->is_done()) return 0;
  const auto length = parser_->content_length();
  return length ? std::optional<std::uint64_t>(*length) : std::nullopt;
}

void request_reader::accept_body(std::int64_t max_bytes) {
  max_body_bytes_ = max_bytes;
  parser_->body_limit(static_cast<std::uint64_t>(max_bytes));
}

void request_reader::drop_body(std::int64_t max_bytes) {
  accept_body(max_bytes);
  drops_body_ = true;
}

bool request_reader::count_body() {
  if (drops_body_) parser_->get().body().clear();
  body_bytes_ = static_cast<std::int64_t>(parser_->get().body().size());
  return parser_->is_done() || counted_.set(body_bytes_); // a complete body no longer counts
}

request_reader::progress request_reader::refuse(api_error error) {
  error_ = std::move(error);
  abandon();
  return progress::failed;
}

void request_reader::abandon() {
  parser_.reset();
  head_seen_ = false;
  body_bytes_ = 0;
  counted_.clear();
}

request_reader::message request_reader::take() {
  auto taken = parser_->release();
  abandon();
  return taken;
}

api_error request_reader::describe_error(error_code error) const {
  if (error == http::error::body_limit) return body_too_large(max_body_bytes_);
  if (error == http::error::header_limit || error == http::error::buffer_overflow)
    return {errc::head_too_large,
            "request line and headers must be at most " + std::to_string(max_head_bytes) +
                " bytes, got more",
            ""};
  return {errc::malformed_http, "the request is not well-formed HTTP/1.1: " + error.message(), ""};
}

http_request describe_request(const request_reader::message& head) {
  const auto field = [&](auto name) { return std::string(head[name]); };
  http_request request;
  request.method = std::string(head.method_string());
  std::string_view target(head.target().data(), head.target().size());
  request.host = field(http::field::host);
  // A client may send an absolute address, as to a proxy; then its host replaces the Host header
  // (RFC 9112, section 3.2.2).
  for (const std::string_view scheme : {"http://", "https://"})
    if (target.starts_with(scheme)) {
      target.remove_prefix(scheme.size());
      const auto end = std::min(target.find_first_of("/?"), target.size());
      request.host = std::string(target.substr(0, end));
      target.remove_prefix(end);
    }
  const auto path_end = target.find('?');
  request.path = percent_decode(target.substr(0, path_end));
  if (path_end != std::string_view::npos) request.query = std::string(target.substr(path_end + 1));
  request.origin = field(http::field::origin);
  request.content_type = field(http::field::content_type);
  request.content_encoding = joined(head, "Content-Encoding");
  request.authorization = field(http::field::authorization);
  request.api_key = field("X-Api-Key");
  request.subprotocols = field(http::field::sec_websocket_protocol);
  request.preflight_headers = field(http::field::access_control_request_headers);
  request.forwarded_for = joined(head, "X-Forwarded-For");
  request.last_event_id = field("Last-Event-ID");
  request.if_none_match = field(http::field::if_none_match);
  request.style = style_of(request.path, head.count("anthropic-version") > 0);
  const auto id = head["X-Request-Id"];
  const bool usable = !id.empty() && id.size() <= 128 &&
                      std::all_of(id.begin(), id.end(), [](char c) { return c > 32 && c < 127; });
  if (const auto parent = head["traceparent"]; parent.size() <= 128)
    request.traceparent = std::string(parent);
  request.request_id = usable ? std::string(id) : make_id("req_");
  return request;
}

} // namespace twill::net
