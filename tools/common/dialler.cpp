#include "tools/common/dialler.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <stdexcept>
#include <utility>

namespace twill::tools {

namespace asio = boost::asio;
using boost::system::error_code;

dialler::dialler(asio::io_context& io, const endpoint& where)
    : where_(where), io_(io), resolver_(io), socket_(io) {
  if (!where.tls) return;
  try {
    context_ = net::make_client_context(where.authorities);
  } catch (const std::runtime_error& error) {
    throw client_error(error.what());
  }
}

namespace {

/// The error message for a failed connection. When nothing listens at the address, usually no
/// daemon was started, so the message says that.
std::string no_connection(const error_code& error) {
  const bool nobody = error == asio::error::connection_refused ||
                      error == boost::system::errc::no_such_file_or_directory;
  return "cannot connect (" + error.message() + ")" +
         (nobody ? "; `twilld` starts a daemon, and --url names one that listens elsewhere" : "");
}

} // namespace

void dialler::connect(done call) {
  call_ = std::move(call);
  if (where_.unix_path.empty())
    connect_tcp();
  else
    connect_unix();
}

void dialler::cancel() {
  cancelled_ = true;
  resolver_.cancel();
  error_code ignored;
  socket_.close(ignored);
  if (tls_) tls_->socket().close(ignored); // also aborts later steps of the handshake
}

void dialler::connect_unix() {
  const asio::local::stream_protocol::endpoint path(where_.unix_path);
  net::client_socket socket(io_, asio::generic::stream_protocol(path.protocol()));
  error_code error;
  socket.connect(path, error); // connecting to a Unix socket succeeds or fails without waiting
  asio::post(io_, [this, error, socket = std::move(socket)]() mutable {
    if (error) return finish(no_connection(error));
    finish({}, std::make_unique<net::client_stream>(std::move(socket)));
  });
}

void dialler::connect_tcp() {
  resolver_.async_resolve(where_.host, where_.port, [this](error_code error, auto found) {
    if (!error && cancelled_) error = asio::error::operation_aborted;
    if (error) return finish("cannot resolve the host (" + error.message() + ")");
    asio::async_connect(socket_, found, [this](error_code error, const auto&) {
      if (error) return finish(no_connection(error));
      error_code ignored;
      socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
      if (context_) return shake_hands(net::client_socket(std::move(socket_)));
      finish({}, std::make_unique<net::client_stream>(net::client_socket(std::move(socket_))));
    });
  });
}

void dialler::shake_hands(net::client_socket socket) {
  tls_ = std::make_unique<net::tls_stream>(std::move(socket), context_, where_.host);
  tls_->handshake(net::io_completion([this](error_code error, std::size_t) {
    if (!error) return finish({}, std::make_unique<net::client_stream>(std::move(tls_)));
    const auto verdict = tls_->verdict();
    finish(verdict.empty() ? "no TLS handshake (" + error.message() + ")"
                           : "its certificate is not trusted (" + verdict +
                                 "); name its authority with --cacert");
  }));
}

void dialler::finish(std::string fault, std::unique_ptr<net::client_stream> stream) {
  if (const auto call = std::exchange(call_, nullptr)) call(std::move(fault), std::move(stream));
}

} // namespace twill::tools
