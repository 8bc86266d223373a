#include "tools/common/ws_client.hpp"

#include <chrono>

#include "tests/catch.hpp"
#include "tests/tools/fake_server.hpp"

using namespace twill::tools;
using namespace twill::tests;
using namespace std::chrono_literals;

TEST_CASE("frames go out and come in, in order", "[tools]") {
  fake_server server({[](web_socket& socket) {
    for (int i = 0; i < 3; ++i)
      write_text(socket, read_text(socket) + "!");
    read_text(socket); // ends when the client closes
  }});
  ws_client client(parse_endpoint(server.url()), "/v1/stream", 5s);
  for (const char* text : {"a", "b", "c"})
    client.send(text);
  CHECK(client.receive(5s) == "a!");
  CHECK(client.receive(5s) == "b!");
  CHECK(client.receive(5s) == "c!");
  CHECK_FALSE(client.receive(10ms).has_value());
  CHECK_FALSE(client.lost());
}

TEST_CASE("more frames than are kept unread all arrive", "[tools]") {
  constexpr int count = 5000;
  fake_server server({[](web_socket& socket) {
    for (int i = 0; i < count; ++i)
      write_text(socket, std::to_string(i));
    read_text(socket);
  }});
  ws_client client(parse_endpoint(server.url()), "/v1/stream", 5s);
  std::this_thread::sleep_for(50ms);
  for (int i = 0; i < count; ++i)
    REQUIRE(client.receive(5s) == std::to_string(i));
}

TEST_CASE("a closed connection is reported after the frames that came before", "[tools]") {
  fake_server server({[](web_socket& socket) {
    write_text(socket, "last words");
    socket.close({beast::websocket::close_code::going_away, "bye"});
  }});
  ws_client client(parse_endpoint(server.url()), "/v1/stream", 5s);
  std::this_thread::sleep_for(50ms);
  CHECK(client.receive(5s) == "last words");
  CHECK(words_of_error([&] { client.receive(5s); }).find("bye") != std::string::npos);
  CHECK(client.lost());
  CHECK_THROWS_AS(client.send("x"), client_error);
}

TEST_CASE("a port where nobody listens is an error, not a wait", "[tools]") {
  const auto words =
      words_of_error([] { ws_client(parse_endpoint("127.0.0.1:1"), "/v1/stream", 5s); });
  CHECK(words.find("cannot connect") != std::string::npos);
}

TEST_CASE("a server that says nothing is given up in time", "[tools]") {
  asio::io_context io;
  asio::ip::tcp::acceptor deaf(io, {asio::ip::make_address("127.0.0.1"), 0});
  const auto port = std::to_string(deaf.local_endpoint().port());
  const auto begin = std::chrono::steady_clock::now();
  CHECK_THROWS_AS(ws_client(parse_endpoint("127.0.0.1:" + port), "/v1/stream", 200ms),
                  client_error);
  CHECK(std::chrono::steady_clock::now() - begin < 5s);
}
