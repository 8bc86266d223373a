// Requests of every framing, in pieces of any size, that are accepted, refused, dropped or given
// up. Exactly the bytes of a body that is being received count against the budget that all sockets
// share; between requests nothing counts.
#include "net/http/request_reader.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "tests/catch.hpp"
#include "tests/net/support/codec_support.hpp"
#include "tests/support/operations.hpp"

using namespace twill;
using namespace twill::test;
using progress = net::request_reader::progress;

namespace {

/// One request of a body of up to 30,000 bytes, in one of three framings, perhaps a broken one.
std::string request_of(const operation& o) {
  const std::size_t n = o.b % 4 == 0 ? 0 : o.b % 30'000;
  const std::string head = "POST /x HTTP/1.1\r\nHost: a\r\n", body(n, 'b');
  switch (o.a % 5) {
  case 0:
    return head + "Content-Length: " + std::to_string(n) + "\r\n\r\n" + body;
  case 1: {
    std::string chunked = head + "Transfer-Encoding: chunked\r\n\r\n";
    char size[16];
    for (std::size_t at = 0; at < n; at += 7'000) {
      const std::size_t piece = std::min<std::size_t>(n - at, 7'000);
      std::snprintf(size, sizeof size, "%zx\r\n", piece);
      chunked += size + body.substr(at, piece) + "\r\n";
    }
    return chunked + "0\r\n\r\n";
  }
  case 2: // a chunk whose length is no number
    return head + "Transfer-Encoding: chunked\r\n\r\n" + "400\r\n" + std::string(1024, 'b') +
           "\r\nzz\r\n";
  case 3:
    return "GET /y HTTP/1.1\r\nHost: a\r\n\r\n";
  default:
    return "POST /x HTTP/1.1\r\nHost: a b\r\nContent-Length: 5\r\n\r\nhello";
  }
}

class reading {
public:
  explicit reading(net::server_context& context) : context_(context), reader_(context) {}

  /// Sends the request and does what `o` says with its head and its body.
  void receive(const operation& o) {
    const std::string all = request_of(o);
    // The end of the request may be missing, as after a disconnect or a time-out.
    const std::size_t sent = o.c % 3 == 0 ? all.size() - o.b % all.size() : all.size();
    const std::size_t piece = 1 + o.c % 9'000;
    for (std::size_t at = 0; at < sent; at += piece) {
      const std::size_t n = std::min(piece, sent - at);
      std::memcpy(reader_.input().prepare(n).data(), all.data() + at, n);
      reader_.input().commit(n);
      if (!advance(o)) return;
    }
    if (reader_.receiving()) give_up();
  }

private:
  /// False when the request is over.
  bool advance(const operation& o) {
    for (;;) {
      const progress now = reader_.advance();
      check();
      switch (now) {
      case progress::need_more:
        return true;
      case progress::failed:
        demand(!reader_.receiving(), "a refused request is not received further");
        reader_.input().clear();
        return false;
      case progress::whole:
        reader_.take();
        check();
        return false;
      case progress::head:
        if (o.kind % 7 == 1) return give_up();
        if (o.kind % 7 == 2)
          reader_.drop_body(20'000);
        else
          reader_.accept_body(o.kind % 7 == 3 ? 10'000 : 1'000'000);
      }
    }
  }

  bool give_up() {
    reader_.abandon();
    reader_.input().clear();
    demand(!reader_.receiving(), "an abandoned request is not received");
    check();
    return false;
  }

  void check() {
    const std::int64_t counted = context_.input.total_bytes();
    if (!reader_.receiving())
      demand_equal(counted, 0, "what counts between requests");
    else
      demand(counted <= reader_.body_bytes(), "no more counts than has come");
  }

  net::server_context& context_;
  net::request_reader reader_;
};

} // namespace

TEST_CASE("request reader: no byte of a body counts once its request is over") {
  twill::testing::codec_fixture fixture;
  config::options options;
  net::server_context context(options, fixture.engine);
  const auto failure = first_failure({300, 20'000, 12}, [&](const operations& sequence) {
    {
      reading one(context); // requests that follow each other on one connection
      for (const operation& o : sequence)
        one.receive(o);
    }
    demand_equal(context.input.total_bytes(), 0, "what counts after the connection");
  });
  CHECK(failure == "");
}

TEST_CASE("request reader: a body counts while it is being received") {
  twill::testing::codec_fixture fixture;
  config::options options;
  net::server_context context(options, fixture.engine);
  net::request_reader reader(context);
  const std::string head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n";
  const auto receive = [&](const std::string& bytes) {
    std::memcpy(reader.input().prepare(bytes.size()).data(), bytes.data(), bytes.size());
    reader.input().commit(bytes.size());
    return reader.advance();
  };
  REQUIRE(receive(head) == progress::head);
  reader.accept_body(2000);
  REQUIRE(receive(std::string(400, 'x')) == progress::need_more);
  CHECK(context.input.total_bytes() == 400);
}
