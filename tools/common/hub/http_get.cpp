#include "tools/common/hub/http_get.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <cctype>
#include <memory>
#include <optional>
#include <utility>

#include "net/connection/client_stream.hpp"

namespace twill::tools::hub {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;
using tcp = asio::ip::tcp;

constexpr std::chrono::milliseconds tick{100};
constexpr std::uint32_t most_head_bytes = 64 << 10;
constexpr std::size_t piece_bytes = 256 << 10;

std::string base64(std::string_view text) {
  static constexpr char digits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < text.size(); i += 3) {
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k)
      bits = bits << 8 | (i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0);
    for (std::size_t k = 0; k < 4; ++k)
      out += i + k > text.size() ? '=' : digits[bits >> (18 - 6 * k) & 63];
  }
  return out;
}

class get_operation {
public:
  get_operation(const http_request_head& request, const http_rules& rules)
      : request_(request), rules_(rules), proxy_(rules.proxies.for_address(request.address)),
        resolver_(io_), socket_(io_) {
    try {
      if (request.address.tls) context_ = net::make_client_context({});
    } catch (const std::runtime_error& error) {
      throw connection_error(error.what(), true);
    }
  }

  void run(const head_handler& on_head, const body_handler& on_body) {
    connect();
    if (request_.address.tls) {
      if (proxy_ != nullptr) ask_for_tunnel();
      shake_hands();
    } else {
      stream_ = std::make_unique<net::client_stream>(net::client_socket(std::move(socket_)));
    }
    send();
    receive(on_head, on_body);
  }

private:
  /// Starts an asynchronous operation with a completion handler that takes its error, and runs the
  /// io_context until the operation has ended. Polls `stopped` and enforces the timeout `patience`.
  template <class Start>
  error_code await(std::chrono::seconds patience, const Start& start) {
    // While bytes arrive without a pause, every operation below ends before the first poll of
    // `stopped` in the loop, so `stopped` is also polled here.
    if (rules_.stopped && rules_.stopped()) throw stopped_error();
    std::optional<error_code> done;
    start([&done](error_code error, const auto&...) { done = error; });
    const auto end = std::chrono::steady_clock::now() + patience;
    bool late = false, stop = false;
    while (!done) {
      io_.restart();
      io_.run_one_for(tick);
      if (done) break;
      stop = stop || (rules_.stopped && rules_.stopped());
      late = late || std::chrono::steady_clock::now() > end;
      if (stop || late) cancel();
    }
    if (stop) throw stopped_error();
    if (late) throw connection_error(host() + " did not answer in time");
    return *done;
  }

  void cancel() {
    error_code ignored;
    resolver_.cancel();
    socket_.close(ignored);
    if (tls_) tls_->socket().close(ignored);
    if (stream_) stream_->close();
  }

  std::string host() const { return request_.address.host; }

  void connect() {
    const url& to = proxy_ != nullptr ? proxy_->address : request_.address;
    tcp::resolver::results_type found;
    auto error = await(rules_.connect_timeout, [&](auto done) {
      resolver_.async_resolve(to.host, to.port, [&found, done](error_code error, auto results) {
        found = std::move(results);
        done(error);
      });
    });
    if (error) throw connection_error("cannot resolve " + to.host + " (" + error.message() + ")");
    error = await(rules_.connect_timeout, [&](auto done) {
      asio::async_connect(socket_, found, [done](error_code error, const auto&) { done(error); });
    });
    if (error)
      throw connection_error("cannot connect to " + to.authority() + " (" + error.message() + ")");
  }

  void set_credentials(http::request<http::empty_body>& request) const {
    if (!proxy_->credentials.empty())
      request.set(http::field::proxy_authorization, "Basic " + base64(proxy_->credentials));
  }

  void ask_for_tunnel() {
    const auto target = request_.address.host + ":" + request_.address.port;
    http::request<http::empty_body> request{http::verb::connect, target, 11};
    request.set(http::field::host, target);
    set_credentials(request);
    auto error = await(rules_.connect_timeout,
                       [&](auto done) { http::async_write(socket_, request, std::move(done)); });
    http::response_parser<http::empty_body> reply;
    reply.skip(true);
    beast::flat_buffer buffer(most_head_bytes);
    if (!error)
      error = await(rules_.connect_timeout, [&](auto done) {
        http::async_read_header(socket_, buffer, reply, std::move(done));
      });
    const auto name = "the proxy " + proxy_->address.authority();
    if (error) throw connection_error(name + " does not answer (" + error.message() + ")");
    if (reply.get().result() != http::status::ok)
      throw connection_error(name + " refuses a connection to " + target + " (status " +
                                 std::to_string(reply.get().result_int()) + ")",
                             true);
  }

  void shake_hands() {
    tls_ = std::make_unique<net::tls_stream>(net::client_socket(std::move(socket_)), context_,
                                             request_.address.host);
    const auto error = await(rules_.connect_timeout, [&](auto done) {
      tls_->handshake(net::io_completion(std::move(done)));
    });
    if (error) {
      const auto verdict = tls_->verdict();
      if (!verdict.empty())
        throw connection_error("the certificate of " + host() + " is not trusted (" + verdict +
                                   "); install the package ca-certificates, or name its authority "
                                   "in SSL_CERT_FILE",
                               true);
      throw connection_error("no TLS handshake with " + host() + " (" + error.message() + ")");
    }
    stream_ = std::make_unique<net::client_stream>(std::move(tls_));
  }

  void send() {
    const bool whole = proxy_ != nullptr && !request_.address.tls;
    http::request<http::empty_body> request{
        http::verb::get, whole ? request_.address.text() : request_.address.target, 11};
    request.set(http::field::host, request_.address.authority());
    request.set(http::field::user_agent, "twill/" TWILL_VERSION);
    request.set(http::field::accept_encoding, "identity"); // sizes and hashes refer to the
                                                           // uncompressed file
    request.set(http::field::connection, "close");
    for (const auto& [name, value] : request_.fields)
      request.set(name, value);
    if (whole) set_credentials(request);
    const auto error = await(rules_.silence_timeout, [&](auto done) {
      http::async_write(*stream_, request, std::move(done));
    });
    if (error) throw connection_error(host() + " closed the connection (" + error.message() + ")");
  }

  void receive(const head_handler& on_head, const body_handler& on_body) {
    http::response_parser<http::buffer_body> parser;
    parser.header_limit(most_head_bytes);
    parser.body_limit(boost::none);
    beast::flat_buffer buffer(2 * piece_bytes);
    auto error = await(rules_.silence_timeout, [&](auto done) {
      http::async_read_header(*stream_, buffer, parser, std::move(done));
    });
    if (error) throw connection_error("no answer from " + host() + " (" + error.message() + ")");
    http_reply_head head;
    head.status = static_cast<int>(parser.get().result_int());
    for (const auto& field : parser.get()) {
      std::string name(field.name_string());
      for (char& c : name)
        c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      head.fields[name] = std::string(field.value());
    }
    if (!on_head(head)) return;
    const auto piece = std::make_unique<char[]>(piece_bytes);
    while (!parser.is_done()) {
      auto& body = parser.get().body();
      body.data = piece.get();
      body.size = piece_bytes;
      body.more = true;
      error = await(rules_.silence_timeout, [&](auto done) {
        http::async_read_some(*stream_, buffer, parser, std::move(done));
      });
      if (error == http::error::need_buffer) error = {};
      // Bytes that arrived before the connection was lost are delivered too.
      if (const auto n = piece_bytes - body.size; n > 0) on_body({piece.get(), n});
      if (error)
        throw connection_error("the connection to " + host() + " was cut (" + error.message() +
                               ")");
    }
  }

  const http_request_head& request_;
  const http_rules& rules_;
  const proxy_server* proxy_;
  asio::io_context io_;
  tcp::resolver resolver_;
  tcp::socket socket_;
  net::tls_context context_;
  std::unique_ptr<net::tls_stream> tls_;
  std::unique_ptr<net::client_stream> stream_;
};

} // namespace

const std::string& http_reply_head::field(const std::string& name) const {
  static const std::string none;
  const auto found = fields.find(name);
  return found == fields.end() ? none : found->second;
}

void http_get(const http_request_head& request, const http_rules& rules,
              const head_handler& on_head, const body_handler& on_body) {
  get_operation(request, rules).run(on_head, on_body);
}

} // namespace twill::tools::hub
