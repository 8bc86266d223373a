// dialler: connects to a daemon over TCP or a Unix socket, with TLS when the daemon's address asks
// for it.
//
// All functions run on the thread of the io_context. The dialler must stay alive until connect()
// has called its callback; cancel() aborts a connection attempt.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <string>

#include "net/connection/client_stream.hpp"
#include "tools/common/endpoint.hpp"

namespace twill::tools {

class dialler {
public:
  /// `fault` is an error message; when it is empty, `stream` is connected.
  using done = std::function<void(std::string fault, std::unique_ptr<net::client_stream> stream)>;

  dialler(boost::asio::io_context& io, const endpoint& where);

  /// Starts to connect and calls `call` exactly once, with the outcome. Throws client_error when
  /// the file of `--cacert` cannot be read.
  void connect(done call);
  void cancel();

private:
  void connect_unix();
  void connect_tcp();
  void shake_hands(net::client_socket socket);
  void finish(std::string fault, std::unique_ptr<net::client_stream> stream = nullptr);

  const endpoint& where_;
  boost::asio::io_context& io_;
  boost::asio::ip::tcp::resolver resolver_;
  boost::asio::ip::tcp::socket socket_;
  std::unique_ptr<net::tls_stream> tls_;
  net::tls_context context_;
  bool cancelled_ = false;
  done call_;
};

} // namespace twill::tools
