// How requests are framed (RFC 9112): a request that two parsers could read differently is refused,
// and no part of a request is ever read as another request.
#include <algorithm>
#include <string>
#include <string_view>

#include "net/http/request_reader.hpp"
#include "net/server_context.hpp"
#include "tests/catch.hpp"
#include "tests/net/support/codec_support.hpp"
#include "tests/net/support/running_server.hpp"

using namespace twill;
using namespace twill::testing;

namespace {

const std::string post = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n";
const std::string smuggled = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// The status of the only reply that these bytes get before the connection closes.
int only_status(std::uint16_t port, const std::string& bytes) {
  client c(port);
  c.try_send(bytes);
  const auto reply = c.read_reply();
  CHECK(reply.header("connection") == "close");
  CHECK(c.closed_within(3s));
  return reply.status;
}

} // namespace

TEST_CASE("A reader takes no longer body than is accepted, nor memory for one") {
  codec_fixture fixture;
  const config::options options;
  net::server_context context{options, fixture.engine};
  for (const std::string length : {"11", "497554224488149440", "18446744073709551615"}) {
    net::request_reader reader(context);
    const std::string bytes = post + "Content-Length: " + length + "\r\n\r\nhello";
    auto room = reader.input().prepare(bytes.size());
    std::copy(bytes.begin(), bytes.end(), static_cast<char*>(room.data()));
    reader.input().commit(bytes.size());
    REQUIRE(reader.advance() == net::request_reader::progress::head);
    reader.accept_body(10);
    REQUIRE(reader.advance() == net::request_reader::progress::failed);
    CHECK(reader.error().message.find("10 bytes") != std::string::npos);
  }
}

TEST_CASE("Bodies framed in two ways are refused, and nothing after them is read") {
  running_server s;
  for (const std::string framing :
       {"Transfer-Encoding: chunked, identity\r\n", "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: xchunked\r\n", "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "Transfer-Encoding:\r\n",
        "Transfer-Encoding: \"chunked\"\r\n", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n", "Content-Length: +5\r\n",
        "Content-Length: 5, 6\r\n", "Content-Length: 0x5\r\n", "Content-Length: -1\r\n",
        "Content-Length: 99999999999999999999\r\n", "Content-Length : 5\r\n",
        " Content-Length: 5\r\n"}) {
    INFO(framing);
    CHECK(only_status(s.port(), post + framing + "\r\n" + smuggled) == 400);
  }
  CHECK(s.engine.submitted().empty());
}

TEST_CASE("An HTTP/1.0 request with a transfer coding is answered once, and the socket closes") {
  running_server s;
  for (const std::string coding : {"chunked", "identity", "gzip, chunked", ""})
    for (const std::string others : {"", "Connection: keep-alive\r\n", "Content-Length: 3\r\n",
                                     "Connection: keep-alive\r\nContent-Length: 3\r\n"})
      for (const std::string line : {"POST /v1/completions", "GET /health", "POST /nowhere"}) {
        INFO(coding << "; " << others << "; " << line);
        CHECK(only_status(s.port(), line + " HTTP/1.0\r\n" + others + "Transfer-Encoding: " +
                                        coding + "\r\n\r\n0\r\n\r\n" + smuggled) == 400);
      }
  CHECK(s.engine.submitted().empty());
}

TEST_CASE("One empty line before a request is skipped, in pieces too, and begins no request") {
  config::server_options o;
  o.header_timeout = 200ms;
  running_server s(o);
  const std::string whole = R"({"prompt":"x"})";
  client c(s.port());
  c.send("\r\n" + smuggled + "\r\n" + post + "Content-Length: 14\r\n\r\n" + whole + "\r\n" +
         smuggled);
  CHECK(c.read_reply().body == R"({"status":"ok"})");
  CHECK(c.read_reply().status == 200);
  CHECK(c.read_reply().body == R"({"status":"ok"})");
  for (const std::string first : {"\r", "\r\n"}) {
    INFO(first.size());
    c.send(first);
    CHECK(!c.closed_within(500ms)); // longer than a head may take
    c.send((first + "\n").substr(first.size(), 2 - first.size()) + smuggled);
    CHECK(c.read_reply().body == R"({"status":"ok"})");
  }
  for (const std::string lines : {"\r\n\r\n", "\n", "\r\r\n", "\rX", " \r\n"}) {
    INFO(lines);
    CHECK(only_status(s.port(), lines + smuggled) == 400);
  }
}

TEST_CASE("Broken chunks are refused, and nothing after them is read") {
  running_server s;
  for (const std::string chunks :
       {"x\r\nabc\r\n", "-1\r\nabc\r\n", "3\r\nabcd\r\n", "3\nabc\r\n", "fffffffffffffffff\r\n",
        "3 \x01\r\nabc\r\n", "\r\n3\r\nabc\r\n"}) {
    INFO(chunks);
    CHECK(only_status(s.port(), post + "Transfer-Encoding: chunked\r\n\r\n" + chunks + smuggled) ==
          400);
  }
  client c(s.port()); // chunk extensions and trailers are allowed, and ignored
  c.send(post +
         "Transfer-Encoding: chunked\r\n\r\ne;a=b;c=\"d\"\r\n{\"prompt\":\"x\"}\r\n0;e\r\n"
         "X-Trailer: y\r\n\r\n" +
         smuggled);
  CHECK(c.read_reply().status == 200);
  CHECK(c.read_reply().body == R"({"status":"ok"})");
}

TEST_CASE("A trailer is no header: a key in it opens nothing") {
  config::server_options o;
  o.api_keys = {"secret"};
  running_server s(o);
  client c(s.port());
  c.send(post + "Transfer-Encoding: chunked\r\nTrailer: Authorization\r\n\r\n"
                "e\r\n{\"prompt\":\"x\"}\r\n0\r\nAuthorization: Bearer secret\r\n\r\n");
  CHECK(c.read_reply().status == 401);
  CHECK(s.engine.submitted().empty());
}

TEST_CASE("An HTTP/1.1 request has exactly one Host") {
  running_server s;
  CHECK(only_status(s.port(), "GET /health HTTP/1.1\r\n\r\n" + smuggled) == 400);
  CHECK(only_status(s.port(), "GET /health HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n" +
                                  smuggled) == 400);
}

TEST_CASE("A request says at most once who asks") {
  running_server s;
  for (const std::string name : {"Authorization", "X-Api-Key", "Origin"}) {
    INFO(name);
    const auto two = [&](const std::string& a, const std::string& b) {
      return "GET /health HTTP/1.1\r\nHost: localhost\r\n" + name + ": " + a + "\r\n" + name +
             ": " + b + "\r\n\r\n";
    };
    CHECK(only_status(s.port(), two("Bearer a", "Bearer b") + smuggled) == 400);
    CHECK(only_status(s.port(), two("Bearer a", "Bearer a") + smuggled) == 400);
  }
}

TEST_CASE("Garbage of every kind is refused, and the server keeps serving") {
  running_server s;
  for (const std::string bytes :
       {"\r\n\r\n\r\n\r\nX", "GET\r\n\r\n", "GET /\r\n\r\n",
        "GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\nA\x01: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\nA: b\x01\r\n\r\n",
        "GET / HTTP/1.1\nHost: localhost\n\n", "G\xffT / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /\x01 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET  / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "\x16\x03\x01\x02\x05\x01\x03\x03 this is TLS\r\n\r\n"}) {
    INFO(bytes);
    CHECK(only_status(s.port(), bytes) == 400);
  }
  CHECK(client(s.port()).get("/health").status == 200);
}

TEST_CASE("A body is read only for a client that may send it") {
  config::server_options o;
  o.api_keys = {"secret"};
  running_server s(o);
  const std::string huge = "Content-Length: 16777216\r\n";
  client keyless(s.port());
  keyless.send(post + huge + "\r\n");
  CHECK(keyless.read_reply().status == 401); // at once: not a byte of the body has been sent
  CHECK(keyless.closed_within(3s));
  client lost(s.port());
  lost.send("POST /nope HTTP/1.1\r\nHost: localhost\r\n" + huge + "\r\n");
  CHECK(lost.read_reply().status == 404);
  client polite(s.port());
  polite.send(post + huge + "Expect: 100-continue\r\n\r\n");
  CHECK(polite.read_reply().status == 401);
  client welcome(s.port());
  welcome.send(post + "Authorization: Bearer secret\r\nContent-Length: 14\r\n"
                      "Expect: 100-continue\r\n\r\n");
  CHECK(welcome.read_reply().status == 100);
  client small(s.port()); // the server reads a short body, so the connection stays open
  CHECK(small.post("/v1/completions", R"({"prompt":"x"})").status == 401);
  CHECK(small.get("/health").status == 200);
}

TEST_CASE("Keyless bodies do not keep others from sending theirs") {
  config::server_options o;
  o.api_keys = {"secret"};
  o.max_body_bytes = 64 * 1024;
  running_server s(o);
  std::vector<std::unique_ptr<client>> keyless;
  for (int i = 0; i < 17; ++i) {
    keyless.push_back(std::make_unique<client>(s.port()));
    keyless.back()->send(post + "Content-Length: 65536\r\n\r\n" + std::string(65535, 'x'));
  }
  client welcome(s.port());
  CHECK(welcome.post("/v1/completions", R"({"prompt":"x"})", "Authorization: Bearer secret\r\n")
            .status == 200);
}

TEST_CASE("The budget of bodies is given back with the reply, while sockets stay open") {
  config::server_options o;
  o.max_body_bytes = 64 * 1024;
  running_server s(o);
  const std::string body = R"({"prompt":")" + std::string(60'000, 'x') + R"("})";
  std::vector<std::unique_ptr<client>> idle;
  for (int i = 0; i < 20; ++i) { // more than the budget of 16 bodies
    idle.push_back(std::make_unique<client>(s.port()));
    const auto status = idle.back()->post("/v1/completions", body).status;
    CAPTURE(i);
    CHECK(status != 503);
  }
}

TEST_CASE("Endpoints that take a few fields take no large body") {
  running_server s;
  client c(s.port());
  c.send("POST /v1/batches HTTP/1.1\r\nHost: localhost\r\nContent-Length: 70000\r\n\r\n");
  CHECK(c.read_reply().status == 413);
}

TEST_CASE("A body that trickles is refused, one that comes in time is not") {
  config::server_options o;
  o.header_timeout = std::chrono::milliseconds(300);
  o.body_rate_bytes = 10'000;
  running_server s(o);
  client slow(s.port());
  slow.send(post + "Content-Length: 14\r\n\r\n{");
  CHECK(slow.read_reply().status == 408);
  client fast(s.port());
  fast.send(post + "Content-Length: 20000\r\n\r\n" + R"({"prompt":"x")" + std::string(9000, ' '));
  std::this_thread::sleep_for(600ms); // longer than a head may take
  fast.send(std::string(20000 - 9000 - 14, ' ') + "}");
  CHECK(fast.read_reply().status == 200);
}
