#include "tools/twill-bench/engine/control_client.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include <optional>

#include "tools/twill-bench/engine/endpoint.hpp"

namespace twill::bench {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr auto call_limit = std::chrono::seconds(60);

} // namespace

struct control_client::state {
  endpoint server;
  std::vector<name_value> headers;
  asio::io_context context{1};
  std::optional<beast::tcp_stream> stream;

  /// Runs the context until `done` was called; asynchronous calls are what Beast's time-outs need.
  template <class Start>
  error_code await(Start start) {
    error_code result = asio::error::operation_aborted;
    start([&](const error_code& error, auto&&...) { result = error; });
    context.restart();
    context.run();
    return result;
  }

  error_code connect() {
    error_code error;
    const auto found = asio::ip::tcp::resolver(context).resolve(server.host, server.port, error);
    if (error) return error;
    stream.emplace(context);
    stream->expires_after(call_limit);
    error = await([&](auto done) { stream->async_connect(found, done); });
    if (error) stream.reset();
    return error;
  }

  reply call(const http::request<http::string_body>& request) {
    const bool reused = stream.has_value();
    error_code error = reused ? error_code{} : connect();
    beast::flat_buffer buffer;
    http::response_parser<http::string_body> parser;
    parser.body_limit(boost::none);
    if (!error) {
      stream->expires_after(call_limit);
      error = await([&](auto done) { http::async_write(*stream, request, done); });
    }
    if (!error) error = await([&](auto done) { http::async_read(*stream, buffer, parser, done); });
    if (error) {
      stream.reset();
      if (reused) return call(request); // the server had closed the idle connection
      return {0, {}, error.message()};
    }
    if (!parser.get().keep_alive()) stream.reset();
    return {static_cast<int>(parser.get().result_int()), parser.get().body(), {}};
  }

  reply call(http::verb verb, std::string_view path, const std::string& body) {
    http::request<http::string_body> request{verb, server.prefix + std::string(path), 11};
    request.set(http::field::host, server.authority());
    request.set(http::field::user_agent, "twill-bench/" TWILL_VERSION);
    for (const auto& [name, value] : headers)
      request.set(name, value);
    if (verb == http::verb::post) {
      request.set(http::field::content_type, "application/json");
      request.body() = body;
    }
    request.prepare_payload();
    return call(request);
  }
};

control_client::control_client(const std::string& base_url, std::vector<name_value> headers)
    : state_(new state{parse_base_url(base_url), std::move(headers)}) {}

control_client::~control_client() = default;

reply control_client::get(std::string_view path) {
  return state_->call(http::verb::get, path, {});
}

reply control_client::post(std::string_view path, const std::string& json_body) {
  return state_->call(http::verb::post, path, json_body);
}

} // namespace twill::bench
