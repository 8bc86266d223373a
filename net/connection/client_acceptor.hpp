// client_acceptor: accepts sockets on every address of the server, counts each one, and prepares it
// for its first request.
//
// Sockets of clients and of administrators are counted apart, each up to its own limit; a socket
// beyond a limit is closed at once. When accept fails, for example for lack of descriptors, it is
// tried again soon. The acceptor also owns the certificate and key of TLS.
//
// Threads: call begin() and close() on the strand that is given to the constructor, and
// reload_certificate() on any thread. listen() and use_tls() must be called before begin().
// Context, io_context and strand must outlive the object. Each accepted socket has a strand of its
// own on the io_context.
#pragma once

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/base/read_file.hpp"
#include "net/beast.hpp"
#include "net/connection/arrival.hpp"
#include "net/connection/client_origin.hpp"
#include "net/connection/client_stream.hpp"
#include "net/connection/tls_credentials.hpp"
#include "net/listeners.hpp"
#include "net/server_context.hpp"

namespace twill::net {

class client_acceptor {
public:
  using strand = asio::strand<asio::io_context::executor_type>;

  client_acceptor(server_context& context, asio::io_context& io, strand control);

  /// Takes the descriptors of `sockets`, which are for administrators if `admin` is set.
  void listen(listeners& sockets, bool admin);
  /// Throws std::runtime_error when the certificate and the key cannot be used.
  void use_tls(const config::server_options& options, const file_reader& read);
  /// Does nothing without TLS; otherwise see tls_credentials::reload().
  std::string reload_certificate(const file_reader& read);

  void begin();
  /// No socket is accepted any more.
  void close();

private:
  using acceptor = asio::basic_socket_acceptor<asio::generic::stream_protocol>;

  /// One address on which clients are accepted.
  struct listening_socket {
    listening_socket(acceptor a, const strand& control, listener_kind kind)
        : socket(std::move(a)), pause(control), listener(kind) {}
    acceptor socket;
    asio::steady_timer pause;
    listener_kind listener;
  };

  void accept(listening_socket& at);
  void retry_accept(listening_socket& at, error_code error);
  void adopt(client_socket socket);
  void adopt_administrator(client_socket socket, listener_kind listener);
  void begin(arriving_client client);

  server_context& context_;
  asio::io_context& io_;
  strand control_;
  std::vector<std::unique_ptr<listening_socket>> listening_;
  std::optional<tls_credentials> tls_;
};

} // namespace twill::net
