#include "tools/twill-bench/engine/control_client.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include <optional>
#include <stdexcept>

#include "tools/twill-bench/engine/endpoint.hpp"
#include "tools/twill-bench/engine/server_stream.hpp"

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
  std::string cacert;
  asio::io_context context{1};
  std::optional<server_stream> stream;

  /// Runs the context until `done` has been called or the time limit has passed.
  template <class Start>
  error_code await(Start start) {
    error_code result = asio::error::operation_aborted;
    stream->expires_at(clock::now() + call_limit);
    start([&](const error_code& error, auto&&...) {
      result = error;
      stream->expires_never();
    });
    context.restart();
    context.run();
    return stream->cause(result);
  }

  /// Connects. Returns an empty text, or the reason why there is no connection.
  std::string connect() {
    server_address to;
    try {
      to = find_server(server, cacert);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    stream.emplace(context);
    error_code error;
    asio::co_spawn(
        context,
        [&]() -> asio::awaitable<void> {
          error = co_await stream->connect(to, clock::now() + call_limit);
        },
        asio::detached);
    context.restart();
    context.run();
    if (!error) return {};
    const std::string why =
        stream->why_untrusted().empty() ? error.message() : untrusted_text(stream->why_untrusted());
    stream.reset();
    return why;
  }

  reply call(const http::request<http::string_body>& request) {
    const bool reused = stream.has_value();
    if (!reused)
      if (std::string why = connect(); !why.empty()) return {0, {}, std::move(why)};
    beast::flat_buffer buffer;
    http::response_parser<http::string_body> parser;
    parser.body_limit(boost::none);
    error_code error = await([&](auto done) { http::async_write(*stream, request, done); });
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

control_client::control_client(const std::string& base_url, std::vector<name_value> headers,
                               std::string cacert)
    : state_(new state{parse_base_url(base_url), std::move(headers), std::move(cacert)}) {}

control_client::~control_client() = default;

reply control_client::get(std::string_view path) {
  return state_->call(http::verb::get, path, {});
}

reply control_client::post(std::string_view path, const std::string& json_body) {
  return state_->call(http::verb::post, path, json_body);
}

} // namespace twill::bench
