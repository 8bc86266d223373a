// http_transport: HTTP/1.1 with Beast. It reuses keep-alive connections, the most recently used one
// first, and reads replies as server-sent events or as a whole.
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <array>
#include <memory>
#include <set>
#include <vector>

#include "tools/twill-bench/engine/deadline.hpp"
#include "tools/twill-bench/engine/http_connection.hpp"
#include "tools/twill-bench/engine/sse_parser.hpp"
#include "tools/twill-bench/engine/transport.hpp"

namespace twill::bench {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;
using connection = http_connection;
using connection_ptr = std::shared_ptr<connection>;

enum class verdict {
  reusable, ///< the connection can carry another request
  broken,   ///< the connection cannot be used again; the exchange has its outcome
  /// The server had closed the idle connection before it answered any part of this request.
  stale,
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

  asio::awaitable<void> perform(exchange& request, std::string message) override {
    connection_ptr link = take_idle();
    const std::string head = head_ + std::to_string(message.size()) + "\r\n\r\n";
    for (;;) {
      if (interrupted_) co_return request.interrupted();
      if (!link) {
        link = std::make_shared<connection>(context_);
        if (!co_await connect(*link, request)) co_return;
      }
      busy_.insert(link.get());
      const verdict end = co_await talk(*link, request, head, message);
      busy_.erase(link.get());
      if (end == verdict::reusable) {
        link->used = true;
        link->unlimited();
        idle_.push_back(std::move(link));
      }
      if (end != verdict::stale) co_return;
      link.reset();
    }
  }

  void interrupt() override {
    interrupted_ = true;
    for (connection* link : busy_)
      link->shut();
  }

  void close() override { idle_.clear(); }

private:
  connection_ptr take_idle() {
    if (idle_.empty()) return nullptr;
    connection_ptr link = std::move(idle_.back());
    idle_.pop_back();
    return link;
  }

  void report(exchange& request, const error_code& error, const char* kind) const {
    if (interrupted_)
      request.interrupted();
    else if (error == beast::error::timeout)
      deadline_passed(request, route_.timeout);
    else
      request.fail(kind, error.message());
  }

  asio::awaitable<bool> connect(connection& link, exchange& request) {
    busy_.insert(&link);
    const error_code error =
        co_await link.stream.connect(route_.address, deadline_of(request, route_.timeout));
    busy_.erase(&link);
    if (!error) co_return true;
    if (link.stream.why_untrusted().empty() || interrupted_)
      report(request, error, "connect");
    else
      request.fail("connect", untrusted_text(link.stream.why_untrusted()));
    co_return false;
  }

  /// Sends one request and reads its reply on an open connection.
  asio::awaitable<verdict> talk(connection& link, exchange& request, const std::string& head,
                                const std::string& message) {
    error_code error;
    link.limit(deadline_of(request, route_.timeout));
    const std::array<asio::const_buffer, 2> parts{asio::buffer(head), asio::buffer(message)};
    co_await asio::async_write(link.stream, parts,
                               asio::redirect_error(asio::use_awaitable, error));
    if (!error && request.cancel_due()) co_return drop(link, request);
    error = link.cause(error);
    http_reply reply;
    while (!error && !reply.has_head())
      error = co_await link.read(reply);
    if (error) {
      if (link.used && error != beast::error::timeout && !interrupted_ && !reply.has_any())
        co_return verdict::stale;
      report(request, error, "reset");
      co_return verdict::broken;
    }
    const bool events = reply.status() == 200 && is_event_stream(reply.content_type());
    if (events ? co_await read_events(link, reply, request)
               : co_await read_whole(link, reply, request))
      co_return route_.keep_alive&& reply.keep_alive() && link.buffer.size() == 0
          ? verdict::reusable
          : verdict::broken;
    co_return verdict::broken;
  }

  static bool is_event_stream(beast::string_view type) {
    constexpr beast::string_view wanted = "text/event-stream";
    return type.substr(0, wanted.size()) == wanted;
  }

  /// Closes the connection at once, as a client that disappears does.
  static verdict drop(connection& link, exchange& request) {
    link.shut();
    request.cancelled();
    return verdict::broken;
  }

  /// Returns true when the reply was read to its end, so that the connection may be used again.
  asio::awaitable<bool> read_events(connection& link, http_reply& reply, exchange& request) {
    sse_parser events;
    bool sound = true;
    const auto take = [&](std::string_view data) {
      request.event(data, link.read_at);
      return true;
    };
    reply.on_body([&](std::string_view bytes) { sound = sound && events.feed(bytes, take); });
    error_code error = link.parse(reply);
    for (;;) {
      if (!sound) request.fail("protocol", "an event is too long");
      if (request.observed().how == outcome::failed) co_return false;
      if (request.cancel_due()) co_return drop(link, request) == verdict::reusable;
      if (error) {
        if (request.finished()) break; // the end mark has come; a missing last chunk does no harm
        report(request, error, "reset");
        co_return false;
      }
      if (reply.is_done()) break;
      error = co_await link.read(reply);
    }
    request.ended();
    co_return reply.is_done();
  }

  asio::awaitable<bool> read_whole(connection& link, http_reply& reply, exchange& request) {
    std::string body;
    reply.on_body([&](std::string_view bytes) { body += bytes; });
    error_code error = link.parse(reply);
    while (!error && !reply.is_done())
      error = co_await link.read(reply);
    if (error) {
      report(request, error, "reset");
      co_return false;
    }
    if (reply.status() != 200)
      request.refused(reply.status(), body);
    else if (route_.stream)
      request.fail("protocol", "the reply is no event stream: " + body.substr(0, 200));
    else
      request.whole(body, link.read_at);
    request.ended();
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
