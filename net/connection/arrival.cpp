#include "net/connection/arrival.hpp"

#include <boost/asio/post.hpp>
#include <utility>

#include "config/base/log.hpp"
#include "net/connection/deadline_timer.hpp"
#include "net/connection/proxy_header.hpp"
#include "net/http/http_session.hpp"

namespace twill::net {
namespace {

class arrival final : public socket_session, public std::enable_shared_from_this<arrival> {
public:
  arrival(arriving_client client, server_context& context)
      : context_(context), client_(std::move(client)), deadline_(client_.socket.get_executor()) {}

  ~arrival() override { context_.sessions.remove(registry_id_); }

  void start() {
    registry_id_ = context_.sessions.add(weak_from_this(), socket_use::arriving);
    deadline_.at(deadline_timer::clock::now() + context_.options.server.header_timeout,
                 [weak = weak_from_this()](auto) {
                   if (auto self = weak.lock()) self->end("it said nothing in time");
                 });
    if (client_.proxy_header)
      read_header();
    else
      shake_hands();
  }

  void begin_drain() override { close_now(); }
  void close_now() override {
    asio::post(client_.socket.get_executor(), [self = shared_from_this()] { self->end({}); });
  }

private:
  void read_header() {
    const auto parsed = read_proxy_header(header_);
    if (parsed.now == proxy_header::state::malformed) return end("its PROXY header is malformed");
    if (parsed.now == proxy_header::state::done) {
      if (parsed.client.has_value() && !adopt(*parsed.client)) return;
      header_ = {};
      return shake_hands();
    }
    const auto before = header_.size();
    header_.resize(before + parsed.missing);
    client_.socket.async_read_some(
        asio::buffer(header_.data() + before, parsed.missing),
        [self = shared_from_this(), before](error_code error, std::size_t n) {
          if (error || self->over_) return self->end("it left before its PROXY header was whole");
          self->header_.resize(before + n);
          self->read_header();
        });
  }

  /// Counts the socket towards the limit of `client`, the client that the proxy names. The
  /// X-Forwarded-For header is then believed only if `client` is itself a trusted proxy. Returns
  /// false, after closing the socket, if `client` has too many sockets.
  bool adopt(const ip_address& client) {
    client_.origin.address = client;
    client_.origin.trusted_proxy = context_.proxies.trusts(client);
    const auto limit = context_.options.server.max_per_address;
    if (client_.slot.count_for(counted_as(client_.origin, limit))) return true;
    end("`server.max_per_address` is reached");
    return false;
  }

  void shake_hands() {
    if (!client_.tls) return begin_session(client_stream(std::move(client_.socket)));
    tls_ = std::make_unique<tls_stream>(std::move(client_.socket), std::move(client_.tls));
    tls_->handshake(io_completion([self = shared_from_this()](error_code error, std::size_t) {
      if (error || self->over_) return self->end("no TLS handshake");
      self->begin_session(client_stream(std::move(self->tls_)));
    }));
  }

  void begin_session(client_stream stream) {
    over_ = true;
    deadline_.cancel();
    context_.sessions.remove(registry_id_);
    start_http_session(std::move(stream), std::move(client_.slot), context_,
                       std::move(client_.origin));
  }

  void end(std::string_view why) {
    if (std::exchange(over_, true)) return;
    if (!why.empty() && log::enabled(log::level::debug))
      log::debug("a connection of " + client_.origin.text() + " was closed: " + std::string(why));
    deadline_.cancel();
    error_code ignored;
    (tls_ ? tls_->socket() : client_.socket).close(ignored);
  }

  server_context& context_;
  arriving_client client_;
  deadline_timer deadline_;
  std::unique_ptr<tls_stream> tls_;
  std::string header_;
  std::uint64_t registry_id_ = 0;
  bool over_ = false;
};

} // namespace

void receive_client(arriving_client client, server_context& context) {
  std::make_shared<arrival>(std::move(client), context)->start();
}

} // namespace twill::net
