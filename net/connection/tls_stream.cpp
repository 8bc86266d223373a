#include "net/connection/tls_stream.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <new>

#include "config/base/ip_network.hpp"

namespace twill::net {

/// One handshake, read or write that is retried until the socket has allowed it to complete.
struct tls_stream::operation {
  step kind;
  void* data = nullptr;
  std::size_t size = 0;
  io_completion done;
};

namespace {

// A BIO (OpenSSL's I/O interface) over the socket. OpenSSL's own socket BIO would raise SIGPIPE
// when the peer has closed the connection.

int descriptor_of(BIO* bio) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio)));
}

int after_transfer(BIO* bio, ssize_t n, int retry_flag) {
  BIO_clear_retry_flags(bio);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
    BIO_set_flags(bio, retry_flag | BIO_FLAGS_SHOULD_RETRY);
  return static_cast<int>(n);
}

int send_bytes(BIO* bio, const char* data, int size) {
  const auto n = ::send(descriptor_of(bio), data, static_cast<std::size_t>(size), MSG_NOSIGNAL);
  return after_transfer(bio, n, BIO_FLAGS_WRITE);
}

int receive_bytes(BIO* bio, char* data, int size) {
  const auto n = ::recv(descriptor_of(bio), data, static_cast<std::size_t>(size), 0);
  return after_transfer(bio, n, BIO_FLAGS_READ);
}

long control(BIO*, int command, long, void*) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

BIO* make_bio(int descriptor) {
  static BIO_METHOD* const method = [] {
    auto* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket without signals");
    if (made == nullptr) throw std::bad_alloc();
    BIO_meth_set_write(made, send_bytes);
    BIO_meth_set_read(made, receive_bytes);
    BIO_meth_set_ctrl(made, control);
    return made;
  }();
  auto* bio = BIO_new(method);
  if (bio == nullptr) throw std::bad_alloc();
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor)));
  BIO_set_init(bio, 1);
  return bio;
}

} // namespace

void tls_stream::free_ssl::operator()(ssl_st* ssl) const {
  SSL_free(ssl);
}

tls_stream::tls_stream(client_socket socket, tls_context context)
    : socket_(std::move(socket)), context_(std::move(context)), ssl_(SSL_new(context_.get())) {
  if (!ssl_) throw std::bad_alloc();
  auto* bio = make_bio(socket_.native_handle());
  SSL_set_bio(ssl_.get(), bio, bio); // `ssl_` now owns `bio`
  error_code ignored;
  socket_.native_non_blocking(true, ignored);
  SSL_set_accept_state(ssl_.get());
}

tls_stream::tls_stream(client_socket socket, tls_context context, const std::string& host)
    : tls_stream(std::move(socket), std::move(context)) {
  SSL_set_connect_state(ssl_.get());
  if (ip_address::parse(host).has_value()) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_.get()), host.c_str());
  } else {
    SSL_set1_host(ssl_.get(), host.c_str());
    SSL_set_tlsext_host_name(ssl_.get(), host.c_str());
  }
}

tls_stream::~tls_stream() = default;

void tls_stream::handshake(io_completion done) {
  run({step::handshake, nullptr, 0, std::move(done)}, true);
}

void tls_stream::read_some(asio::mutable_buffer to, io_completion done) {
  run({step::read, to.data(), to.size(), std::move(done)}, true);
}

void tls_stream::write_some(asio::const_buffer from, io_completion done) {
  run({step::write, const_cast<void*>(from.data()), from.size(), std::move(done)}, true);
}

/// `inside` says whether the caller is the function that started the operation, so that `op.done`
/// must be posted instead of called.
void tls_stream::run(operation op, bool inside) {
  // The descriptor of a closed socket may by now belong to another file.
  if (!socket_.is_open())
    return asio::post(socket_.get_executor(), [done = std::move(op.done)]() mutable {
      done(asio::error::bad_descriptor, 0);
    });
  // SSL_get_error() reads this thread's error queue, so it must not have older errors.
  ERR_clear_error();
  std::size_t n = 0;
  int ok = 1;
  if (op.kind == step::handshake)
    ok = SSL_do_handshake(ssl_.get());
  else if (op.size > 0)
    ok = op.kind == step::read ? SSL_read_ex(ssl_.get(), op.data, op.size, &n)
                               : SSL_write_ex(ssl_.get(), op.data, op.size, &n);
  const int fault = ok == 1 ? SSL_ERROR_NONE : SSL_get_error(ssl_.get(), ok);
  if (fault == SSL_ERROR_WANT_READ || fault == SSL_ERROR_WANT_WRITE) {
    const auto until =
        fault == SSL_ERROR_WANT_READ ? client_socket::wait_read : client_socket::wait_write;
    return socket_.async_wait(until, [this, op = std::move(op)](error_code error) mutable {
      if (error) return op.done(error, 0);
      run(std::move(op), false);
    });
  }
  error_code error;
  if (fault == SSL_ERROR_ZERO_RETURN)
    error = asio::error::eof;
  else if (fault != SSL_ERROR_NONE) // a damaged TLS record, or the peer has closed the connection
    error = asio::error::connection_reset;
  if (!inside) return op.done(error, n);
  asio::post(socket_.get_executor(),
             [done = std::move(op.done), error, n]() mutable { done(error, n); });
}

void tls_stream::shutdown_send() {
  if (!socket_.is_open()) return;
  ERR_clear_error();
  if (SSL_is_init_finished(ssl_.get())) SSL_shutdown(ssl_.get());
  error_code ignored;
  socket_.shutdown(client_socket::shutdown_send, ignored);
}

std::string tls_stream::verdict() const {
  const auto result = SSL_get_verify_result(ssl_.get());
  return result == X509_V_OK ? std::string() : X509_verify_cert_error_string(result);
}

} // namespace twill::net
