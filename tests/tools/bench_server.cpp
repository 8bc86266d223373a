#include "tests/tools/bench_server.hpp"

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

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <set>
#include <thread>

#include "tools/twill-bench/engine/json_scan.hpp"

namespace twill::tests {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace websocket = boost::beast::websocket;
namespace js = twill::bench::json_scan;
using asio::ip::tcp;
using boost::system::error_code;
using socket_stream = websocket::stream<beast::tcp_stream>;

std::string number(std::int64_t n) {
  return std::to_string(n);
}

} // namespace

struct bench_server::state {
  std::function<script(int)> plan;
  bool with_tokenizer;
  server_counts counts;
  int open = 0;
  mutable std::mutex mutex;
  std::vector<std::string> bodies;
  std::vector<sent_times> log;
  asio::io_context context{1};
  tcp::acceptor acceptor{context, tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0)};
  std::thread thread;

  script begin(const std::string& body, std::size_t& number) {
    counts.most_open = std::max(counts.most_open.load(), ++open);
    const std::lock_guard lock(mutex);
    bodies.push_back(body);
    number = log.size();
    log.push_back({std::chrono::steady_clock::now(), {}});
    return plan(counts.requests++);
  }

  void chunk_sent(std::size_t number) {
    const std::lock_guard lock(mutex);
    log[number].chunks.push_back(std::chrono::steady_clock::now());
  }

  asio::awaitable<void> sleep(int ms) {
    if (ms <= 0) co_return;
    asio::steady_timer timer(context, std::chrono::milliseconds(ms));
    co_await timer.async_wait(asio::use_awaitable);
  }

  asio::awaitable<void> sleep_before(const script& s, int chunk) {
    co_await sleep(chunk == 0 ? s.first_ms : s.gap_ms);
    while (chunk == 0 && counts.requests < s.after_requests)
      co_await sleep(1);
  }

  asio::awaitable<void> accept_all() {
    for (;;) {
      error_code error;
      tcp::socket socket =
          co_await acceptor.async_accept(asio::redirect_error(asio::use_awaitable, error));
      if (error) co_return;
      ++counts.connections;
      socket.set_option(tcp::no_delay(true));
      asio::co_spawn(context, serve(beast::tcp_stream(std::move(socket))), asio::detached);
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
      auto request = parser.release();
      if (websocket::is_upgrade(request)) {
        auto socket = std::make_shared<socket_stream>(std::move(stream));
        co_await socket->async_accept(request, asio::redirect_error(asio::use_awaitable, error));
        if (!error) co_await serve_socket(socket, std::string(request.target()));
        co_return;
      }
      if (!co_await answer(stream, request)) co_return;
      if (!request.keep_alive()) co_return;
    }
  }

  asio::awaitable<bool> write(beast::tcp_stream& stream, const std::string& text) {
    error_code error;
    co_await asio::async_write(stream, asio::buffer(text),
                               asio::redirect_error(asio::use_awaitable, error));
    co_return !error;
  }

  asio::awaitable<bool> write_json(beast::tcp_stream& stream, int status, const std::string& body) {
    const std::string text = "HTTP/1.1 " + number(status) +
                             " x\r\nContent-Type: application/json\r\nContent-Length: " +
                             number(std::int64_t(body.size())) + "\r\n\r\n" + body;
    co_return co_await write(stream, text);
  }

  asio::awaitable<bool> answer(beast::tcp_stream& stream,
                               const http::request<http::string_body>& request) {
    const std::string target(request.target());
    const std::string& body = request.body();
    if (target == "/v1/models")
      co_return co_await write_json(
          stream, 200, R"({"object":"list","data":[{"id":"scripted","max_model_len":4096}]})");
    if (with_tokenizer && target == "/tokenize") co_return co_await tokenize(stream, body);
    if (with_tokenizer && target == "/detokenize") co_return co_await detokenize(stream, body);
    if (target == "/v1/completions" || target == "/v1/chat/completions" ||
        target == "/completion" || target == "/generate" || target == "/generate_stream") {
      const dialect how{target, {}}; // GCC 12 destroys a temporary here twice
      co_return co_await generate(stream, body, how);
    }
    co_return co_await write_json(stream, 404, R"({"error":{"message":"no such route"}})");
  }

  /// A made-up tokenizer: one token per character; an id is its character's code.
  asio::awaitable<bool> tokenize(beast::tcp_stream& stream, const std::string& body) {
    const std::string text = js::decode(js::member(body, "prompt"));
    std::string list;
    for (const char c : text)
      list += (list.empty() ? "" : ",") + number(int(c));
    const std::string reply = R"({"tokens":[)" + list + "]}";
    co_return co_await write_json(stream, 200, reply);
  }

  /// Each id becomes a letter, and every seventh two letters, so that texts must be aligned again.
  asio::awaitable<bool> detokenize(beast::tcp_stream& stream, const std::string& body) {
    const std::string_view tokens = js::member(body, "tokens");
    std::string text;
    for (std::size_t i = 0; i < js::length(tokens); ++i) {
      const auto id = js::integer(js::element(tokens, i)).value_or(0);
      text += id < 128 ? char(id) : char('a' + id % 26);
      if (id >= 128 && id % 7 == 0) text += 'z';
    }
    const std::string reply = R"({"prompt":")" + text + "\"}";
    co_return co_await write_json(stream, 200, reply);
  }

  asio::awaitable<bool> generate(beast::tcp_stream& stream, const std::string& body,
                                 const dialect& how) {
    std::size_t number = 0;
    const script s = begin(body, number);
    const bool fine = co_await generate_one(stream, body, how, s, number);
    --open;
    co_return fine;
  }

  asio::awaitable<bool> generate_one(beast::tcp_stream& stream, const std::string& body,
                                     const dialect& how, const script& s, std::size_t number) {
    if (s.status != 200)
      co_return co_await write_json(stream, s.status,
                                    R"({"error":{"message":"scripted refusal"}})");
    if (js::member(body, "stream") != "true" && how.target != "/generate_stream") {
      co_await sleep(s.first_ms + s.gap_ms * (s.n_chunks - 1));
      const std::string reply = how.whole(s);
      co_return co_await write_json(stream, 200, reply);
    }
    const auto chunk = [](const std::string& text) {
      std::array<char, 16> size{};
      std::snprintf(size.data(), size.size(), "%zx\r\n", text.size());
      return size.data() + text + "\r\n";
    };
    std::string head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                       "Transfer-Encoding: chunked\r\n\r\n";
    if (s.empty_opening) head += chunk(how.opening());
    bool fine = co_await write(stream, head);
    for (int i = 0; i < s.n_chunks && fine; ++i) {
      if (i == s.cut_after) {
        stream.socket().close();
        co_return false;
      }
      if (i == s.error_after) {
        const std::string last = chunk(how.error()) + "0\r\n\r\n";
        co_return co_await write(stream, last);
      }
      co_await sleep_before(s, i);
      const std::string text = chunk(how.chunk(s, i));
      chunk_sent(number);
      fine = co_await write(stream, text);
    }
    if (!fine) {
      ++counts.dropped;
      co_return false;
    }
    std::string tail;
    const std::string end = s.end_mark ? how.end(s) : "";
    if (!end.empty()) tail = chunk(end);
    co_await sleep(end.empty() ? 0 : s.end_ms);
    tail += "0\r\n\r\n";
    co_return co_await write(stream, tail);
  }

  struct lane_state {
    std::set<std::string> cancelled;
    std::vector<std::string> outbox;
    bool writing = false, closed = false;
  };
  using lanes = std::shared_ptr<lane_state>;

  asio::awaitable<void> serve_socket(std::shared_ptr<socket_stream> socket, std::string target) {
    auto all = std::make_shared<lane_state>();
    beast::flat_buffer buffer;
    for (;;) {
      error_code error;
      co_await socket->async_read(buffer, asio::redirect_error(asio::use_awaitable, error));
      if (error) break;
      std::string message = beast::buffers_to_string(buffer.data());
      buffer.consume(buffer.size());
      const std::string lane =
          js::decode(js::member(message, target == "/v1/stream" ? "id" : "stream_id"));
      if (js::member(message, "op") == "\"cancel\"" ||
          js::member(message, "type") == "\"response.cancel\"") {
        ++counts.cancels;
        all->cancelled.insert(lane);
        continue;
      }
      if (js::member(message, "op") != "\"submit\"" &&
          js::member(message, "type") != "\"response.create\"")
        continue;
      asio::co_spawn(context, generate_frames(socket, all, target, lane, message), asio::detached);
    }
    all->closed = true;
  }

  void send(const std::shared_ptr<socket_stream>& socket, const lanes& all, std::string frame) {
    all->outbox.push_back(std::move(frame));
    if (!all->writing) {
      all->writing = true;
      asio::co_spawn(context, write_frames(socket, all), asio::detached);
    }
  }

  static asio::awaitable<void> write_frames(std::shared_ptr<socket_stream> socket, lanes all) {
    while (!all->outbox.empty()) {
      const std::string frame = all->outbox.front();
      all->outbox.erase(all->outbox.begin());
      error_code error;
      co_await socket->async_write(asio::buffer(frame),
                                   asio::redirect_error(asio::use_awaitable, error));
      if (error) break;
    }
    all->writing = false;
  }

  asio::awaitable<void> generate_frames(std::shared_ptr<socket_stream> socket, lanes all,
                                        std::string target, std::string lane, std::string message) {
    const dialect how{target, lane};
    std::size_t number = 0;
    const script s = begin(message, number);
    for (int i = 0; i < s.n_chunks; ++i) {
      co_await sleep_before(s, i);
      if (all->closed || all->cancelled.count(lane)) {
        ++counts.dropped;
        --open;
        co_return;
      }
      if (i == s.cut_after) {
        beast::get_lowest_layer(*socket).socket().close();
        --open;
        co_return;
      }
      if (i == s.error_after) {
        send(socket, all, how.error());
        --open;
        co_return;
      }
      chunk_sent(number);
      send(socket, all, how.chunk(s, i));
    }
    co_await sleep(s.end_ms);
    if (s.end_mark) send(socket, all, how.end(s));
    --open;
  }
};

bench_server::bench_server(std::function<script(int)> plan, bool with_tokenizer)
    : state_(new state{std::move(plan), with_tokenizer}) {
  asio::co_spawn(state_->context, state_->accept_all(), asio::detached);
  state_->thread = std::thread([this] { state_->context.run(); });
}

bench_server::~bench_server() {
  state_->context.stop();
  state_->thread.join();
}

std::string bench_server::url() const {
  return "http://127.0.0.1:" + std::to_string(state_->acceptor.local_endpoint().port());
}

const server_counts& bench_server::counts() const {
  return state_->counts;
}

std::vector<sent_times> bench_server::log() const {
  const std::lock_guard lock(state_->mutex);
  return state_->log;
}

std::vector<std::string> bench_server::bodies() const {
  const std::lock_guard lock(state_->mutex);
  return state_->bodies;
}

} // namespace twill::tests
