#include "tools/twill-bench/null/server.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <boost/beast/websocket/stream.hpp>

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "tools/twill-bench/engine/json_scan.hpp"
#include "tools/twill-bench/null/replies.hpp"

namespace twill::bench {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace websocket = boost::beast::websocket;
using asio::ip::tcp;
using boost::system::error_code;
using request_type = http::request<http::string_body>;

using socket_stream = websocket::stream<beast::tcp_stream>;

/// A WebSocket and what waits to be written to it, one message after the other.
struct null_socket {
  explicit null_socket(beast::tcp_stream stream) : socket(std::move(stream)) {}
  socket_stream socket;
  std::vector<std::string> outbox;
  bool writing = false, closed = false;
};

/// One piece of a chunked body.
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

/// One thread: its context and its listening socket.
class null_shard {
public:
  null_shard(const null_options& options, tcp::endpoint where) : options_(options) {
    acceptor_.open(where.protocol());
    acceptor_.set_option(asio::socket_base::reuse_address(true));
    const int on = 1;
    setsockopt(acceptor_.native_handle(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    acceptor_.bind(where);
    acceptor_.listen(asio::socket_base::max_listen_connections);
    asio::co_spawn(context_, accept_all(), asio::detached);
  }

  tcp::endpoint where() const { return acceptor_.local_endpoint(); }
  void run() { context_.run(); }
  void stop() { context_.stop(); }

private:
  asio::awaitable<void> accept_all() {
    for (;;) {
      error_code error;
      tcp::socket socket =
          co_await acceptor_.async_accept(asio::redirect_error(asio::use_awaitable, error));
      if (error == asio::error::operation_aborted) co_return;
      if (error) { // out of descriptors, for one: what is open may yet close
        asio::steady_timer pause(context_, std::chrono::milliseconds(10));
        co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
        continue;
      }
      socket.set_option(tcp::no_delay(true), error);
      asio::co_spawn(context_, serve(beast::tcp_stream(std::move(socket))), asio::detached);
    }
  }

  asio::awaitable<void> serve(beast::tcp_stream stream) {
    beast::flat_buffer buffer;
    for (;;) {
      http::request_parser<http::string_body> parser;
      parser.body_limit(64u << 20);
      error_code error;
      co_await http::async_read(stream, buffer, parser,
                                asio::redirect_error(asio::use_awaitable, error));
      if (error) co_return;
      const request_type request = parser.release();
      if (websocket::is_upgrade(request)) {
        auto socket = std::make_shared<null_socket>(std::move(stream));
        co_await socket->socket.async_accept(request,
                                             asio::redirect_error(asio::use_awaitable, error));
        const std::string target(request.target());
        if (!error) co_await serve_socket(socket, target);
        co_return;
      }
      if (!co_await answer(stream, request) || !request.keep_alive()) co_return;
    }
  }

  static asio::awaitable<bool> write(beast::tcp_stream& stream, const std::string& text) {
    error_code error;
    co_await asio::async_write(stream, asio::buffer(text),
                               asio::redirect_error(asio::use_awaitable, error));
    co_return !error;
  }

  asio::awaitable<bool> answer(beast::tcp_stream& stream, const request_type& request) {
    const std::string target(request.target());
    std::string reply;
    if (target == "/v1/models")
      reply = with_head(200, R"({"object":"list","data":[{"id":"null","object":"model",)"
                             R"("max_model_len":1000000,"vocab_size":32000}]})");
    else if (target == "/health")
      reply = with_head(200, "{}");
    else if (!known_null_route(target))
      reply = with_head(404, R"({"error":{"message":"no such route"}})");
    if (!reply.empty()) co_return co_await write(stream, reply);
    const null_request asked = read_null_request(target, request.body());
    const null_replies says = null_replies_for(target, asked);
    if (asked.stream) co_return co_await stream_events(stream, asked, says);
    co_await pause(options_.first_token + options_.token_gap * (asked.output_tokens - 1));
    reply = with_head(200, says.whole);
    co_return co_await write(stream, reply);
  }

  asio::awaitable<bool> stream_events(beast::tcp_stream& stream, const null_request& asked,
                                      const null_replies& says) {
    const std::string head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                             "Transfer-Encoding: chunked\r\n\r\n";
    const std::string tail = (says.end.empty() ? "" : chunked(says.end)) + "0\r\n\r\n";
    const std::int64_t at_once = options_.tokens_per_write;
    std::string full;
    for (std::int64_t i = 0; i < at_once; ++i)
      full += chunked(says.token);
    std::string piece;
    for (std::int64_t sent = 0; sent < asked.output_tokens; sent += at_once) {
      co_await pause(sent == 0 ? options_.first_token : options_.token_gap);
      const bool ends = sent + at_once >= asked.output_tokens;
      if (sent > 0 && !ends) {
        if (!co_await write(stream, full)) co_return false;
        continue;
      }
      piece = sent == 0 ? head : "";
      for (std::int64_t i = sent; i < std::min(sent + at_once, asked.output_tokens); ++i)
        piece += chunked(i + 1 == asked.output_tokens ? says.last : says.token);
      if (ends) piece += tail;
      if (!co_await write(stream, piece)) co_return false;
    }
    co_return true;
  }

  asio::awaitable<void> pause(std::chrono::microseconds span) {
    if (span.count() <= 0) co_return;
    asio::steady_timer timer(context_, span);
    error_code ignored;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }

  asio::awaitable<void> serve_socket(std::shared_ptr<null_socket> on, std::string target) {
    beast::flat_buffer buffer;
    on->socket.read_message_max(64u << 20);
    for (;;) {
      error_code error;
      co_await on->socket.async_read(buffer, asio::redirect_error(asio::use_awaitable, error));
      if (error) break;
      const std::string message = beast::buffers_to_string(buffer.data());
      buffer.consume(buffer.size());
      const std::string_view order = json_scan::string_body(
          json_scan::member(message, target == "/v1/stream" ? "op" : "type"));
      if (order != "submit" && order != "response.create") continue; // a cancel comes too late here
      asio::co_spawn(context_, stream_frames(on, target, message), asio::detached);
    }
    on->closed = true;
  }

  asio::awaitable<void> stream_frames(std::shared_ptr<null_socket> on, std::string target,
                                      std::string message) {
    const null_request asked = read_null_request(target, message);
    const null_replies says = null_replies_for(target, asked);
    for (std::int64_t i = 0; i < asked.output_tokens && !on->closed; ++i) {
      co_await pause(i == 0 ? options_.first_token : options_.token_gap);
      co_await send(on, says.token);
    }
    co_await send(on, says.end);
  }

  /// Waits for its turn on a socket that several generations share.
  asio::awaitable<void> send(const std::shared_ptr<null_socket>& on, const std::string& text) {
    if (on->closed) co_return;
    if (on->writing) {
      on->outbox.push_back(text);
      co_return;
    }
    on->writing = true;
    error_code error;
    co_await on->socket.async_write(asio::buffer(text),
                                    asio::redirect_error(asio::use_awaitable, error));
    while (!error && !on->outbox.empty()) {
      const std::vector<std::string> waiting = std::exchange(on->outbox, {});
      for (const std::string& each : waiting) {
        co_await on->socket.async_write(asio::buffer(each),
                                        asio::redirect_error(asio::use_awaitable, error));
        if (error) break;
      }
    }
    on->writing = false;
    on->closed = on->closed || error.failed();
  }

  null_options options_;
  asio::io_context context_{1};
  tcp::acceptor acceptor_{context_};
};

} // namespace

struct null_server::state {
  std::vector<std::unique_ptr<null_shard>> shards;
};

null_server::null_server(const null_options& options) : state_(new state) {
  error_code error;
  const auto address = asio::ip::make_address(options.host, error);
  if (error) throw std::runtime_error("--listen must be an address, got " + options.host);
  tcp::endpoint where(address, options.port);
  try {
    for (unsigned i = 0; i < std::max(1u, options.threads); ++i) {
      state_->shards.push_back(std::make_unique<null_shard>(options, where));
      where = state_->shards.front()->where();
    }
  } catch (const boost::system::system_error& failed) {
    throw std::runtime_error("cannot listen on " + options.host + ":" +
                             std::to_string(options.port) + ": " + failed.code().message());
  }
}

null_server::~null_server() {
  stop();
}

std::string null_server::url() const {
  const tcp::endpoint where = state_->shards.front()->where();
  const std::string host = where.address().to_string();
  return "http://" + (where.address().is_v6() ? "[" + host + "]" : host) + ":" +
         std::to_string(where.port());
}

void null_server::run() {
  std::vector<std::thread> threads;
  for (const auto& each : state_->shards)
    threads.emplace_back([&each] { each->run(); });
  for (std::thread& each : threads)
    each.join();
}

void null_server::stop() {
  for (const auto& each : state_->shards)
    each->stop();
}

} // namespace twill::bench
