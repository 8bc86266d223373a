#include "tools/twill-bench/null/shard.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <boost/beast/websocket/stream.hpp>

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <utility>

#include "tools/twill-bench/engine/handshake_stream.hpp"
#include "tools/twill-bench/engine/json_scan.hpp"
#include "tools/twill-bench/engine/ws_frames.hpp"

namespace twill::bench {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace websocket = boost::beast::websocket;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr std::size_t most_request_bytes = 64u << 20;

/// `text` as one chunk of a chunked HTTP body.
std::string chunked(const std::string& text) {
  std::array<char, 24> size{};
  std::snprintf(size.data(), size.size(), "%zx\r\n", text.size());
  return size.data() + text + "\r\n";
}

std::string with_head(int status, const std::string& body) {
  return "HTTP/1.1 " + std::to_string(status) + (status == 200 ? " OK" : " Not Found") +
         "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

std::string framed(std::string_view payload, ws_opcode kind = ws_opcode::text) {
  std::string out;
  append_frame(out, kind, payload);
  return out;
}

/// Whether a message asks for tokens. A message that cancels a request is ignored: the null
/// server always sends the whole reply.
bool asks_for_tokens(std::string_view message, std::string_view target) {
  const std::string_view order =
      json_scan::string_body(json_scan::member(message, target == "/v1/stream" ? "op" : "type"));
  return order == "submit" || order == "response.create";
}

} // namespace

null_shard::null_shard(const null_options& options, tcp::endpoint where) : options_(options) {
  acceptor_.open(where.protocol());
  acceptor_.set_option(asio::socket_base::reuse_address(true));
  const int on = 1;
  setsockopt(acceptor_.native_handle(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  acceptor_.bind(where);
  acceptor_.listen(asio::socket_base::max_listen_connections);
  asio::co_spawn(context_, accept_all(), asio::detached);
}

asio::awaitable<void> null_shard::accept_all() {
  asio::steady_timer timer(context_);
  for (;;) {
    error_code error;
    tcp::socket socket =
        co_await acceptor_.async_accept(asio::redirect_error(asio::use_awaitable, error));
    if (error == asio::error::operation_aborted) co_return;
    if (error) { // such as no free descriptor: an open connection may close soon
      co_await pause(timer, std::chrono::milliseconds(10));
      continue;
    }
    socket.set_option(tcp::no_delay(true), error);
    asio::co_spawn(context_, serve(std::make_shared<beast::tcp_stream>(std::move(socket))),
                   asio::detached);
  }
}

asio::awaitable<void> null_shard::serve(std::shared_ptr<beast::tcp_stream> stream) {
  beast::flat_buffer buffer;
  const auto out = std::make_shared<sender>(stream);
  for (;;) {
    http::request_parser<http::string_body> parser;
    parser.body_limit(most_request_bytes);
    error_code error;
    co_await http::async_read(stream->socket(), buffer, parser,
                              asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return;
    const request_type request = parser.release();
    if (websocket::is_upgrade(request)) {
      websocket::stream<handshake_stream<beast::tcp_stream>> socket(*stream);
      co_await socket.async_accept(request, asio::redirect_error(asio::use_awaitable, error));
      if (!error) co_await serve_socket(*stream, out, std::string(request.target()), buffer);
      co_return;
    }
    if (!co_await answer(out, request) || !request.keep_alive()) co_return;
  }
}

asio::awaitable<bool> null_shard::answer(const sender_ptr& out, const request_type& request) {
  const std::string target(request.target());
  std::string reply;
  if (target == "/v1/models")
    reply = with_head(200, R"({"object":"list","data":[{"id":"null","object":"model",)"
                           R"("max_model_len":1000000,"vocab_size":32000}]})");
  else if (target == "/health")
    reply = with_head(200, "{}");
  else if (!known_null_route(target))
    reply = with_head(404, R"({"error":{"message":"no such route"}})");
  if (reply.empty()) {
    const null_request asked = read_null_request(target, request.body());
    const null_replies says = null_replies_for(target, asked);
    if (asked.stream) co_return co_await stream_events(out, asked, says);
    asio::steady_timer timer(context_);
    co_await pause(timer, options_.first_token + options_.token_gap * (asked.output_tokens - 1));
    reply = with_head(200, says.whole);
  }
  out->send(reply);
  co_await out->cleared();
  co_return !out->closed();
}

asio::awaitable<bool> null_shard::stream_events(const sender_ptr& out, const null_request& asked,
                                                const null_replies& says) {
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                           "Transfer-Encoding: chunked\r\n\r\n";
  const std::string tail = (says.end.empty() ? "" : chunked(says.end)) + "0\r\n\r\n";
  const std::string token = chunked(says.token);
  const std::int64_t at_once = options_.tokens_per_write;
  std::string full;
  for (std::int64_t i = 0; i < at_once; ++i)
    full += token;
  asio::steady_timer timer(context_);
  std::string payload;
  for (std::int64_t sent = 0; sent < asked.output_tokens && !out->closed(); sent += at_once) {
    co_await before_token(timer, sent);
    const bool ends = sent + at_once >= asked.output_tokens;
    if (sent > 0 && !ends) {
      out->send(full);
    } else {
      payload = sent == 0 ? head : "";
      for (std::int64_t i = sent; i < std::min(sent + at_once, asked.output_tokens); ++i)
        payload += i + 1 == asked.output_tokens ? chunked(says.last) : token;
      if (ends) payload += tail;
      out->send(payload);
    }
    if (!out->clear()) co_await out->cleared();
  }
  co_return !out->closed();
}

asio::awaitable<void> null_shard::serve_socket(beast::tcp_stream& stream, sender_ptr out,
                                               std::string target, beast::flat_buffer& buffer) {
  ws_reader reader(true, most_request_bytes);
  const auto take = [&](ws_opcode kind, std::string_view payload) {
    if (kind == ws_opcode::ping) out->send(framed(payload, ws_opcode::pong));
    if (kind == ws_opcode::close) out->send(framed(payload.substr(0, 2), ws_opcode::close));
    if ((kind == ws_opcode::text || kind == ws_opcode::binary) && asks_for_tokens(payload, target))
      asio::co_spawn(context_, stream_frames(out, target, std::string(payload)), asio::detached);
  };
  for (;;) {
    const auto bytes = buffer.data();
    const bool sound = reader.feed({static_cast<const char*>(bytes.data()), bytes.size()}, take);
    if (!sound || reader.closed()) break;
    buffer.clear();
    error_code error;
    buffer.commit(co_await stream.socket().async_read_some(
        buffer.prepare(16 * 1024), asio::redirect_error(asio::use_awaitable, error)));
    if (error) break;
  }
  out->close();
}

asio::awaitable<void> null_shard::stream_frames(sender_ptr out, std::string target,
                                                std::string message) {
  const null_request asked = read_null_request(target, message);
  const null_replies says = null_replies_for(target, asked);
  const std::string token = framed(says.token);
  asio::steady_timer timer(context_);
  for (std::int64_t i = 0; i < asked.output_tokens && !out->closed(); ++i) {
    co_await before_token(timer, i);
    out->send(token);
    if (!out->clear()) co_await out->cleared();
  }
  out->send(framed(says.end));
}

asio::awaitable<void> null_shard::before_token(asio::steady_timer& timer, std::int64_t i) {
  const std::chrono::microseconds span = i == 0 ? options_.first_token : options_.token_gap;
  if (i == 0 || span.count() > 0) return pause(timer, span);
  return turn();
}

asio::awaitable<void> null_shard::pause(asio::steady_timer& timer, std::chrono::microseconds span) {
  if (span.count() <= 0) co_return;
  timer.expires_after(span);
  error_code ignored;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

/// Waits until the reply may send its next token. In a round, all waiting replies send one token
/// each. The first reply that waits posts the next round, so the events of the sockets that arrived
/// meanwhile are handled before the round.
asio::awaitable<void> null_shard::turn() {
  if (round_.empty()) asio::post(context_, [this] { round_.wake_all(); });
  return round_.wait();
}

} // namespace twill::bench
