// A WebSocket server for one test. It accepts connections one after another and runs a function of
// the test on each.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/websocket.hpp>

#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace twill::tests {

namespace asio = boost::asio;
namespace beast = boost::beast;
using web_socket = beast::websocket::stream<asio::ip::tcp::socket>;

inline std::string read_text(web_socket& socket) {
  beast::flat_buffer buffer;
  socket.read(buffer);
  return beast::buffers_to_string(buffer.data());
}

inline void write_text(web_socket& socket, const std::string& text) {
  socket.text(true);
  socket.write(asio::buffer(text));
}

/// What the call throws, as text; empty when it throws nothing.
template <class Call>
std::string words_of_error(Call call) {
  try {
    call();
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

class fake_server {
public:
  using script = std::function<void(web_socket&)>;

  /// Runs one script per connection, in order. A script may throw when its client disconnects.
  explicit fake_server(std::vector<script> scripts)
      : acceptor_(io_, {asio::ip::make_address("127.0.0.1"), 0}),
        thread_([this, scripts = std::move(scripts)] {
          for (const auto& run : scripts) {
            try {
              web_socket socket(acceptor_.accept());
              socket.accept();
              run(socket);
            } catch (const std::exception&) {
            }
          }
        }) {}

  ~fake_server() { thread_.join(); }

  std::string url() const {
    return "http://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port());
  }

private:
  asio::io_context io_;
  asio::ip::tcp::acceptor acceptor_;
  std::thread thread_;
};

} // namespace twill::tests
