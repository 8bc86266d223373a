#include "net/connection/client_acceptor.hpp"

#include <boost/asio/post.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <netinet/in.h>
#include <sys/socket.h>
#include <utility>

#include "config/base/ip_network.hpp"
#include "config/base/log.hpp"
#include "net/http/http_session.hpp"

namespace twill::net {
namespace {

/// The kernel buffers this many unsent bytes per socket; the write queue bounds the rest.
constexpr int send_buffer_bytes = 256 * 1024;
/// Pause before accept is retried when there are no file descriptors.
constexpr std::chrono::milliseconds accept_retry_pause{100};

std::optional<ip_address> address_of(const asio::generic::stream_protocol::endpoint& peer) {
  const auto* raw = static_cast<const sockaddr*>(peer.data());
  if (raw->sa_family == AF_INET)
    return ip_address::from_v4(reinterpret_cast<const std::uint8_t*>(
        &reinterpret_cast<const sockaddr_in*>(raw)->sin_addr));
  if (raw->sa_family == AF_INET6)
    return ip_address::from_v6(reinterpret_cast<const std::uint8_t*>(
        &reinterpret_cast<const sockaddr_in6*>(raw)->sin6_addr));
  return std::nullopt;
}

} // namespace

client_acceptor::client_acceptor(server_context& context, asio::io_context& io, strand control)
    : context_(context), io_(io), control_(std::move(control)) {}

void client_acceptor::listen(listeners& sockets, bool admin) {
  for (std::size_t i = 0; i < sockets.all().size(); ++i) {
    const auto& one = sockets.all()[i];
    auto listener = listener_kind::clients;
    if (admin)
      listener = one.family == AF_UNIX ? listener_kind::admin_socket : listener_kind::admin_address;
    const asio::generic::stream_protocol protocol(one.family, 0);
    listening_.push_back(std::make_unique<listening_socket>(
        acceptor(control_, protocol, sockets.take(i)), control_, listener));
  }
}

void client_acceptor::use_tls(const config::server_options& options, const file_reader& read) {
  tls_.emplace(options.tls_certificate, options.tls_key, read);
}

std::string client_acceptor::reload_certificate(const file_reader& read) {
  return tls_ ? tls_->reload(read) : std::string();
}

void client_acceptor::begin() {
  for (const auto& one : listening_)
    accept(*one);
}

void client_acceptor::close() {
  error_code ignored;
  for (const auto& one : listening_) {
    one->socket.close(ignored);
    one->pause.cancel();
  }
}

void client_acceptor::accept(listening_socket& at) {
  if (!at.socket.is_open()) return;
  at.socket.async_accept(asio::make_strand(io_),
                         [this, &at](error_code error, client_socket socket) {
                           if (error == asio::error::operation_aborted) return;
                           if (error) return retry_accept(at, error);
                           if (at.listener == listener_kind::clients)
                             adopt(std::move(socket));
                           else
                             adopt_administrator(std::move(socket), at.listener);
                           accept(at);
                         });
}

void client_acceptor::retry_accept(listening_socket& at, error_code error) {
  log::warn("accept: " + error.message());
  at.pause.expires_after(accept_retry_pause);
  at.pause.async_wait([this, &at](error_code cancelled) {
    if (!cancelled) accept(at);
  });
}

void client_acceptor::adopt(client_socket socket) {
  error_code ignored;
  const auto& options = context_.options.server;
  client_origin origin{address_of(socket.remote_endpoint(ignored))};
  origin.trusted_proxy = context_.proxies.trusts(origin.address);
  // Connections of a trusted proxy are counted for the clients behind the proxy.
  const auto counted =
      origin.trusted_proxy ? std::string() : counted_as(origin, options.max_per_address);
  auto slot = context_.sockets.admit(counted);
  if (!slot.has_value()) {
    log::warn("a connection of " + origin.text() +
              " was closed at once: `server.max_connections` or `server.max_per_address` is "
              "reached");
    return;
  }
  arriving_client client{std::move(socket), std::move(*slot), std::move(origin)};
  client.proxy_header = options.proxy_protocol && client.origin.trusted_proxy;
  if (tls_) client.tls = tls_->current();
  begin(std::move(client));
}

/// The administrators' listener has no proxy in front of it, and its Unix socket needs no TLS.
void client_acceptor::adopt_administrator(client_socket socket, listener_kind listener) {
  error_code ignored;
  client_origin origin{address_of(socket.remote_endpoint(ignored)), false, listener};
  auto slot = context_.admin_sockets.admit({});
  if (!slot.has_value())
    return log::warn("a connection to `server.admin_listen` was closed at once: " +
                     std::to_string(max_admin_sockets) + " are open");
  arriving_client client{std::move(socket), std::move(*slot), std::move(origin)};
  if (tls_ && listener == listener_kind::admin_address) client.tls = tls_->current();
  begin(std::move(client));
}

void client_acceptor::begin(arriving_client client) {
  error_code ignored;
  if (client.origin.address.has_value()) client.socket.set_option(tcp::no_delay(true), ignored);
  client.socket.set_option(asio::socket_base::send_buffer_size(send_buffer_bytes), ignored);
  const auto strand = client.socket.get_executor();
  asio::post(strand, [this, client = std::move(client)]() mutable {
    if (client.proxy_header || client.tls) return receive_client(std::move(client), context_);
    start_http_session(client_stream(std::move(client.socket)), std::move(client.slot), context_,
                       std::move(client.origin));
  });
}

} // namespace twill::net
