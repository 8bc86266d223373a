// How the HTTP client's waits for an answer are ended early.
#include "tools/common/http_client.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <string>
#include <thread>

#include "tests/catch.hpp"

using namespace twill::tools;
using namespace std::chrono_literals;
namespace asio = boost::asio;

namespace {

/// A server to which the kernel completes connections, but which reads and answers nothing.
class silent_server {
public:
  silent_server() : acceptor_(io_, {asio::ip::make_address("127.0.0.1"), 0}) {}
  endpoint where() const {
    return parse_endpoint("127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port()));
  }
  void wait_for_client() { acceptor_.accept(client_); }

private:
  asio::io_context io_;
  asio::ip::tcp::acceptor acceptor_;
  asio::ip::tcp::socket client_{io_};
};

} // namespace

TEST_CASE("A stop ends the wait for an answer at any time") {
  for (int i = 0; i < 300; ++i) {
    silent_server server;
    std::stop_source stop;
    std::thread other([&] {
      if (i % 3 == 0) server.wait_for_client();
      std::this_thread::sleep_for(std::chrono::microseconds(i));
      stop.request_stop();
    });
    CHECK_THROWS_AS(http_request(server.where(), "/ready", {}, 24h, stop.get_token()),
                    client_error);
    other.join();
    CHECK_THROWS_AS(http_request(server.where(), "/ready", {}, 24h, stop.get_token()),
                    client_error);
  }
}

TEST_CASE("A silent server is given up when the time is over") {
  const silent_server server;
  CHECK_THROWS_WITH(http_request(server.where(), "/ready", {}, 1ms),
                    "no answer from " + server.where().url() + ": none came in time");
}
