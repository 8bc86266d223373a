#include "tools/common/http_client.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include "tools/common/dialler.hpp"

namespace twill::tools {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;

class exchange {
public:
  exchange(const endpoint& where, std::chrono::milliseconds timeout)
      : where_(where), dialler_(io_, where), patience_(io_, timeout) {
    parser_.body_limit(64u << 20);
  }

  http_reply run(http::request<http::string_body> request, const std::stop_token& stop) {
    request_ = std::move(request);
    patience_.async_wait([this](error_code cancelled) {
      if (!cancelled) give_up();
    });
    const std::stop_callback stopped(stop, [this] { asio::post(io_, [this] { give_up(); }); });
    dialler_.connect([this](std::string fault, std::unique_ptr<net::client_stream> stream) {
      stream_ = std::move(stream);
      if (fault.empty() && !late_) return send();
      end(std::move(fault));
    });
    io_.run();
    if (late_) fault_ = "none came in time";
    if (!fault_.empty()) throw client_error("no answer from " + where_.url() + ": " + fault_);
    return {static_cast<int>(parser_.get().result_int()), parser_.get().body()};
  }

private:
  void give_up() {
    late_ = true;
    dialler_.cancel();
    // A cancel would not affect an operation that starts later, such as the read that follows a
    // completed write. Closing the stream does.
    if (stream_) stream_->close();
  }
  void send() {
    http::async_write(*stream_, request_, [this](error_code error, std::size_t) {
      if (error) return end(error.message());
      http::async_read(*stream_, buffer_, parser_, [this](error_code error, std::size_t) {
        end(error ? error.message() : std::string());
      });
    });
  }
  void end(std::string fault) {
    fault_ = std::move(fault);
    patience_.cancel();
  }

  const endpoint& where_;
  asio::io_context io_;
  dialler dialler_;
  asio::steady_timer patience_;
  std::unique_ptr<net::client_stream> stream_;
  http::request<http::string_body> request_;
  beast::flat_buffer buffer_;
  http::response_parser<http::string_body> parser_;
  std::string fault_;
  bool late_ = false;
};

http::request<http::string_body> begun(const endpoint& where, http::verb verb,
                                       const std::string& path) {
  http::request<http::string_body> request{verb, where.prefix + path, 11};
  request.set(http::field::host, where.authority());
  request.set(http::field::user_agent, "twill/" TWILL_VERSION);
  request.set(http::field::connection, "close");
  return request;
}

} // namespace

http_reply http_send(const endpoint& where, const http_post& what,
                     std::chrono::milliseconds timeout) {
  auto request = begun(where, http::verb::post, what.path);
  for (const auto& line : what.headers) {
    const auto colon = line.find(':');
    const auto value = line.find_first_not_of(' ', colon + 1);
    request.set(line.substr(0, colon), value == line.npos ? std::string() : line.substr(value));
  }
  request.set(http::field::content_type, what.content_type);
  request.body() = what.body;
  request.prepare_payload();
  return exchange(where, timeout).run(std::move(request), {});
}

http_reply http_request(const endpoint& where, const std::string& path, const std::string& body,
                        std::chrono::milliseconds timeout, std::stop_token stop) {
  auto request = begun(where, body.empty() ? http::verb::get : http::verb::post, path);
  if (!where.api_key.empty()) request.set(http::field::authorization, "Bearer " + where.api_key);
  if (!body.empty()) {
    request.set(http::field::content_type, "application/json");
    request.body() = body;
  }
  request.prepare_payload();
  return exchange(where, timeout).run(std::move(request), stop);
}

} // namespace twill::tools
