#include "tools/common/http_client.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

namespace twill::tools {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;

class exchange {
public:
  exchange(const endpoint& where, std::chrono::milliseconds timeout)
      : where_(where), resolver_(io_), stream_(io_) {
    stream_.expires_after(timeout);
    parser_.body_limit(64u << 20);
  }

  http_reply run(http::request<http::string_body> request) {
    request_ = std::move(request);
    resolver_.async_resolve(where_.host, where_.port, [this](error_code error, auto found) {
      if (failed(error)) return;
      stream_.async_connect(found, [this](error_code error, const auto&) {
        if (!failed(error)) send();
      });
    });
    io_.run();
    if (error_)
      throw client_error("no answer from http://" + where_.authority() + ": " + error_.message());
    return {static_cast<int>(parser_.get().result_int()), parser_.get().body()};
  }

private:
  void send() {
    http::async_write(stream_, request_, [this](error_code error, std::size_t) {
      if (failed(error)) return;
      http::async_read(stream_, buffer_, parser_,
                       [this](error_code error, std::size_t) { failed(error); });
    });
  }
  bool failed(error_code error) {
    error_ = error;
    return error.failed();
  }

  const endpoint& where_;
  asio::io_context io_;
  asio::ip::tcp::resolver resolver_;
  beast::tcp_stream stream_;
  http::request<http::string_body> request_;
  beast::flat_buffer buffer_;
  http::response_parser<http::string_body> parser_;
  error_code error_;
};

} // namespace

http_reply http_request(const endpoint& where, const std::string& path, const std::string& body,
                        std::chrono::milliseconds timeout) {
  http::request<http::string_body> request{body.empty() ? http::verb::get : http::verb::post,
                                           where.prefix + path, 11};
  request.set(http::field::host, where.authority());
  request.set(http::field::user_agent, "twill/" TWILL_VERSION);
  request.set(http::field::connection, "close");
  if (!where.api_key.empty()) request.set(http::field::authorization, "Bearer " + where.api_key);
  if (!body.empty()) {
    request.set(http::field::content_type, "application/json");
    request.body() = body;
  }
  request.prepare_payload();
  return exchange(where, timeout).run(std::move(request));
}

} // namespace twill::tools
