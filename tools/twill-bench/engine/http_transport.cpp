// HTTP/1.1 over Beast: keep-alive connections, most recently used first; SSE or whole replies.
#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>

#include <array>
#include <set>

#include "tools/twill-bench/engine/deadline.hpp"
#include "tools/twill-bench/engine/sse_parser.hpp"
#include "tools/twill-bench/engine/transport.hpp"

namespace twill::bench {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;
using response_parser = http::response_parser<http::buffer_body>;

struct connection {
  explicit connection(asio::io_context& context) : stream(context) {}
  beast::tcp_stream stream;
  beast::flat_buffer buffer;
  std::array<char, 8 * 1024> block{}; ///< body bytes of the latest read
  bool used = false;                  ///< it has carried a reply
};
using connection_ptr = std::unique_ptr<connection>;

enum class verdict {
  reusable, ///< the connection can carry another request
  broken,   ///< it can't; the exchange has its outcome
  stale,    ///< the server had closed the idle connection: nothing of this request was answered
};

class http_transport final : public transport {
public:
  http_transport(asio::io_context& context, route where)
      : context_(context), route_(std::move(where)) {
    head_ = "POST " + route_.path + " HTTP/1.1\r\nHost: " + route_.server.authority() +
            "\r\nUser-Agent: twill-bench/" TWILL_VERSION "\r\nContent-Type: application/json\r\n"
            "Accept: " +
            (route_.stream ? "text/event-stream" : "application/json") + "\r\n";
    if (!route_.keep_alive) head_ += "Connection: close\r\n";
    for (const auto& [name, value] : route_.headers)
      head_ += name + ": " + value + "\r\n";
    head_ += "Content-Length: ";
  }

  asio::awaitable<bool> open(std::string&) override { co_return true; }

  asio::awaitable<void> perform(exchange& what, std::string message) override {
    connection_ptr link = take_idle();
    const std::string head = head_ + std::to_string(message.size()) + "\r\n\r\n";
    for (;;) {
      if (interrupted_) co_return what.interrupted();
      if (!link) {
        link = std::make_unique<connection>(context_);
        if (!co_await connect(*link, what)) co_return;
      }
      busy_.insert(link.get());
      const verdict end = co_await talk(*link, what, head, message);
      busy_.erase(link.get());
      if (end == verdict::reusable) {
        link->used = true;
        link->stream.expires_never();
        idle_.push_back(std::move(link));
      }
      if (end != verdict::stale) co_return;
      link.reset();
    }
  }

  void interrupt() override {
    interrupted_ = true;
    for (connection* link : busy_)
      shut(*link);
  }

  void close() override { idle_.clear(); }

private:
  connection_ptr take_idle() {
    if (idle_.empty()) return nullptr;
    connection_ptr link = std::move(idle_.back());
    idle_.pop_back();
    return link;
  }

  static void shut(connection& link) {
    error_code ignored;
    link.stream.socket().close(ignored);
  }

  void report(exchange& what, const error_code& error, const char* kind) const {
    if (interrupted_)
      what.interrupted();
    else if (error == beast::error::timeout)
      deadline_passed(what, route_.timeout);
    else
      what.fail(kind, error.message());
  }

  asio::awaitable<bool> connect(connection& link, exchange& what) {
    error_code error;
    busy_.insert(&link);
    link.stream.expires_at(deadline_of(what, route_.timeout));
    co_await link.stream.async_connect(route_.addresses,
                                       asio::redirect_error(asio::use_awaitable, error));
    busy_.erase(&link);
    if (error) {
      report(what, error, "connect");
      co_return false;
    }
    link.stream.socket().set_option(asio::ip::tcp::no_delay(true), error);
    co_return true;
  }

  /// One request and its reply on an open connection.
  asio::awaitable<verdict> talk(connection& link, exchange& what, const std::string& head,
                                const std::string& message) {
    error_code error;
    link.stream.expires_at(deadline_of(what, route_.timeout));
    const std::array<asio::const_buffer, 2> parts{asio::buffer(head), asio::buffer(message)};
    co_await asio::async_write(link.stream, parts,
                               asio::redirect_error(asio::use_awaitable, error));
    if (!error && what.cancel_due()) co_return drop(link, what);
    response_parser parser;
    parser.body_limit(boost::none);
    if (!error)
      co_await http::async_read_header(link.stream, link.buffer, parser,
                                       asio::redirect_error(asio::use_awaitable, error));
    if (error) {
      const bool timed_out = error == beast::error::timeout;
      if (link.used && !timed_out && !interrupted_ && !parser.got_some()) co_return verdict::stale;
      report(what, error, "reset");
      co_return verdict::broken;
    }
    const auto& reply = parser.get();
    const bool events =
        reply.result_int() == 200 && is_event_stream(reply[http::field::content_type]);
    if (events ? co_await read_events(link, parser, what) : co_await read_whole(link, parser, what))
      co_return route_.keep_alive&& reply.keep_alive() && link.buffer.size() == 0
          ? verdict::reusable
          : verdict::broken;
    co_return verdict::broken;
  }

  static bool is_event_stream(beast::string_view type) {
    constexpr beast::string_view wanted = "text/event-stream";
    return type.substr(0, wanted.size()) == wanted;
  }

  /// Abruptly, as a client that goes away does.
  static verdict drop(connection& link, exchange& what) {
    shut(link);
    what.cancelled();
    return verdict::broken;
  }

  /// The next bytes of the body; none when `error` is set or only framing arrived.
  asio::awaitable<std::string_view> read_body(connection& link, response_parser& parser,
                                              error_code& error) {
    parser.get().body().data = link.block.data();
    parser.get().body().size = link.block.size();
    parser.get().body().more = true;
    co_await http::async_read_some(link.stream, link.buffer, parser,
                                   asio::redirect_error(asio::use_awaitable, error));
    if (error == http::error::need_buffer) error = {};
    co_return std::string_view(link.block.data(), link.block.size() - parser.get().body().size);
  }

  /// True when the reply came to its end in good order.
  asio::awaitable<bool> read_events(connection& link, response_parser& parser, exchange& what) {
    sse_parser events;
    while (!parser.is_done()) {
      error_code error;
      std::string_view bytes = co_await read_body(link, parser, error);
      const clock::time_point now = clock::now();
      const bool sound = events.feed(bytes, [&](std::string_view data) {
        what.event(data, now);
        return true;
      });
      if (!sound) what.fail("protocol", "an event is too long");
      if (what.observed().how == outcome::failed) co_return false;
      if (what.cancel_due()) co_return drop(link, what) == verdict::reusable;
      if (error) {
        if (what.finished()) break; // the end mark came; a missing last chunk does no harm
        report(what, error, "reset");
        co_return false;
      }
    }
    what.ended();
    co_return parser.is_done();
  }

  asio::awaitable<bool> read_whole(connection& link, response_parser& parser, exchange& what) {
    std::string body;
    while (!parser.is_done()) {
      error_code error;
      body += co_await read_body(link, parser, error);
      if (error) {
        report(what, error, "reset");
        co_return false;
      }
    }
    const clock::time_point now = clock::now();
    const int status = static_cast<int>(parser.get().result_int());
    if (status != 200)
      what.refused(status, body);
    else if (route_.stream)
      what.fail("protocol", "the reply is no event stream: " + body.substr(0, 200));
    else
      what.whole(body, now);
    what.ended();
    co_return true;
  }

  asio::io_context& context_;
  route route_;
  std::string head_;
  std::vector<connection_ptr> idle_;
  std::set<connection*> busy_;
  bool interrupted_ = false;
};

} // namespace

std::unique_ptr<transport> make_http_transport(asio::io_context& context, route where) {
  return std::make_unique<http_transport>(context, std::move(where));
}

} // namespace twill::bench
