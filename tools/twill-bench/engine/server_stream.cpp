#include "tools/twill-bench/engine/server_stream.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/error.hpp>

#include <stdexcept>

namespace twill::bench {

namespace asio = boost::asio;
using boost::system::error_code;

server_address find_server(const endpoint& where, const std::string& authorities_file) {
  asio::io_context context;
  error_code error;
  const auto found = asio::ip::tcp::resolver(context).resolve(where.host, where.port, error);
  if (error) throw std::runtime_error("cannot resolve " + where.host + ": " + error.message());
  server_address out;
  for (const auto& each : found)
    out.endpoints.push_back(each.endpoint());
  out.host = where.host;
  if (where.tls) out.tls = net::make_client_context(authorities_file);
  return out;
}

std::string untrusted_text(const std::string& why) {
  return "the server's certificate is not trusted (" + why +
         "); name its authority's PEM file by --cacert";
}

asio::awaitable<error_code> server_stream::connect(const server_address& to,
                                                   clock::time_point deadline) {
  error_code error;
  expires_at(deadline);
  co_await asio::async_connect(socket_, to.endpoints,
                               asio::redirect_error(asio::use_awaitable, error));
  if (!error) {
    error_code ignored;
    socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
    if (to.tls) {
      tls_ = std::make_unique<net::tls_stream>(net::client_socket(std::move(socket_)), to.tls,
                                               to.host);
      auto token = asio::redirect_error(asio::use_awaitable, error);
      co_await asio::async_initiate<decltype(token), void(error_code, std::size_t)>(
          [this](auto handler) { tls_->handshake(net::io_completion(std::move(handler))); }, token);
      if (error) why_untrusted_ = tls_->verdict();
      if (!why_untrusted_.empty()) error = asio::error::no_permission;
    }
  }
  expires_never();
  co_return cause(error);
}

void server_stream::expires_at(clock::time_point deadline) {
  timer_.expires_at(deadline);
  timer_.async_wait([weak = std::weak_ptr(self_)](const error_code& cancelled) {
    const auto self = weak.lock();
    if (cancelled || !self) return;
    (*self)->timed_out_ = true;
    (*self)->close();
  });
}

error_code server_stream::cause(const error_code& error) const {
  return error && timed_out_ ? error_code(boost::beast::error::timeout) : error;
}

void server_stream::close() {
  error_code ignored;
  if (tls_)
    tls_->socket().close(ignored);
  else
    socket_.close(ignored);
}

} // namespace twill::bench
