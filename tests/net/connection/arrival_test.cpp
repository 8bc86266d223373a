// How a client is identified and admitted: PROXY headers, X-Forwarded-For, listeners, limits per
// client.
#include "net/connection/proxy_header.hpp"
#include "net/http/forwarded_for.hpp"
#include "net/listeners.hpp"
#include "tests/catch.hpp"
#include "tests/net/support/codec_support.hpp"
#include "tests/net/support/running_server.hpp"

#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

using namespace twill;
using namespace twill::net;
using namespace twill::testing;

namespace {

using state = proxy_header::state;

/// Reads like the server: never more than is asked for, so that the bytes after the header stay.
proxy_header read_whole(std::string header, const std::string& rest = "GET / HTTP/1.1\r\n") {
  const auto all = header + rest;
  std::size_t n = 0;
  for (;;) {
    const auto parsed = read_proxy_header(std::string_view(all).substr(0, n));
    if (parsed.now == state::done) {
      CHECK(n == header.size());
      return parsed;
    }
    if (parsed.now == state::malformed || n + parsed.missing > all.size()) return parsed;
    REQUIRE(parsed.missing > 0);
    n += parsed.missing;
  }
}

std::string version_2(int command, int family, const std::string& body) {
  std::string out("\r\n\r\n\0\r\nQUIT\n", 12);
  out += static_cast<char>(0x20 | command);
  out += static_cast<char>(family);
  out += static_cast<char>(body.size() >> 8);
  out += static_cast<char>(body.size() & 255);
  return out + body;
}

std::string v4_body() {
  return std::string("\xcb\x00\x71\x07\x0a\x00\x00\x01\x30\x39\x1f\x90", 12);
}

std::string client_text(const proxy_header& parsed) {
  return parsed.client.has_value() ? parsed.client->text() : "";
}

config::server_options behind_proxy(bool proxy_protocol) {
  config::server_options o;
  o.trusted_proxies = {"127.0.0.0/8"};
  o.proxy_protocol = proxy_protocol;
  o.max_per_address = 2;
  o.header_timeout = std::chrono::milliseconds(500);
  return o;
}

std::string get_health(const std::string& forwarded) {
  return "GET /health HTTP/1.1\r\nHost: localhost\r\n" +
         (forwarded.empty() ? std::string() : "X-Forwarded-For: " + forwarded + "\r\n") + "\r\n";
}

std::string fault_of(const std::string& address) {
  try {
    listeners::open({address});
    return {};
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

} // namespace

TEST_CASE("PROXY headers name the client and take none of its bytes") {
  CHECK(client_text(read_whole("PROXY TCP4 203.0.113.7 10.0.0.1 12345 8080\r\n")) == "203.0.113.7");
  CHECK(client_text(read_whole("PROXY TCP6 2001:db8::7 ::1 1 2\r\n")) == "2001:db8::7");
  CHECK(read_whole("PROXY UNKNOWN\r\n").now == state::done);
  CHECK(read_whole("PROXY UNKNOWN a b 1 2\r\n").now == state::done);
  CHECK(client_text(read_whole(version_2(1, 0x11, v4_body()))) == "203.0.113.7");
  CHECK(client_text(read_whole(version_2(1, 0x11, v4_body() + std::string(300, 'T')))) ==
        "203.0.113.7");
  CHECK(client_text(read_whole(
            version_2(1, 0x21, std::string(15, '\0') + "\x01" + std::string(20, '\0')))) == "::1");
  CHECK(client_text(read_whole(version_2(0, 0x00, ""))).empty());
  CHECK(read_whole(version_2(0, 0x00, "")).now == state::done);
}

TEST_CASE("Malformed PROXY headers are noticed") {
  for (const std::string text :
       {"GET / HTTP/1.1\r\n\r\n", "PROXY TCP4 1.2.3.4\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 99999\r\n", "PROXY TCP4 ::1 ::1 1 2\r\n",
        "PROXY TCP5 1.2.3.4 1.2.3.4 1 2\r\n", "PROXY TCP4  1.2.3.4 1.2.3.4 1 2\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 2 3\r\n", "PROXY TCP4 1.2.3.4\rx.2.3.4 1 2\r\n",
        "proxy TCP4 1.2.3.4 1.2.3.4 1 2\r\n"})
    CHECK(read_whole(text).now == state::malformed);
  CHECK(read_whole("PROXY " + std::string(200, 'x') + "\r\n").now == state::malformed);
  CHECK(read_whole(version_2(1, 0x11, "short")).now == state::malformed);
  CHECK(read_whole(version_2(1, 0x41, v4_body())).now == state::malformed);
  CHECK(read_whole(version_2(2, 0x11, v4_body())).now == state::malformed);
  CHECK(read_whole(version_2(1, 0x11, std::string(60000, 'x')), "").now == state::malformed);
  auto version_3 = version_2(1, 0x11, v4_body());
  version_3[12] = 0x31;
  CHECK(read_whole(version_3).now == state::malformed);
}

TEST_CASE("The rightmost address that is no proxy's is the client") {
  const trusted_proxies proxies({"10.0.0.0/8", "::1"});
  const auto client = [&](std::string_view list) -> std::string {
    const auto found = find_forwarded_client(list, proxies);
    if (found.malformed) return "malformed";
    return found.client.has_value() ? found.client->text() : "none";
  };
  CHECK(client("") == "none");
  CHECK(client("203.0.113.7") == "203.0.113.7");
  CHECK(client("1.1.1.1, 203.0.113.7, 10.1.2.3") == "203.0.113.7");
  CHECK(client("made up, 203.0.113.7,10.1.2.3") == "203.0.113.7"); // first, the client's own text
  CHECK(client("10.0.0.1, 10.0.0.2") == "10.0.0.1");
  CHECK(client("[2001:db8::7]:443, [::1]") == "2001:db8::7");
  CHECK(client("203.0.113.7:1234") == "203.0.113.7");
  CHECK(client("unknown, 10.0.0.1") == "malformed");
  CHECK(client(",") == "none");
  CHECK(proxies.trusts(ip_address::parse("::ffff:10.0.0.1")));
  CHECK(!proxies.trusts(std::nullopt));
  CHECK(trusted_proxies({"unix"}).trusts(std::nullopt));
}

TEST_CASE("Behind a trusted proxy each client has its own limit") {
  running_server s(behind_proxy(false));
  std::vector<std::unique_ptr<client>> all;
  const auto status = [&](const std::string& forwarded) {
    all.push_back(std::make_unique<client>(s.port()));
    all.back()->send(get_health(forwarded));
    return all.back()->read_reply().status;
  };
  CHECK(status("203.0.113.7") == 200);
  CHECK(status("6.6.6.6, 203.0.113.7") == 200); // addresses added in front do not help
  CHECK(status("203.0.113.7") == 429);
  CHECK(status("203.0.113.8") == 200);
  all[0]->send(get_health("203.0.113.9")); // one connection may carry several clients
  CHECK(all[0]->read_reply().status == 200);
  CHECK(status("203.0.113.7") == 200);
  CHECK(status("nobody") == 400);
  CHECK(all.back()->closed_within(3s));
  running_server plain{config::server_options{}};
  client c(plain.port());
  c.send(get_health("nobody")); // ignored, since the peer is no trusted proxy
  CHECK(c.read_reply().status == 200);
}

TEST_CASE("With the PROXY protocol the header decides, and there must be one") {
  running_server s(behind_proxy(true));
  std::vector<std::unique_ptr<client>> all;
  const auto serves = [&](const std::string& header) {
    all.push_back(std::make_unique<client>(s.port()));
    if (!all.back()->try_send(header + get_health(""))) return false;
    try {
      return all.back()->read_reply().status == 200;
    } catch (const std::exception&) {
      return false;
    }
  };
  const std::string one = "PROXY TCP4 203.0.113.7 10.0.0.1 12345 8080\r\n";
  CHECK(serves(one));
  CHECK(serves(version_2(1, 0x11, v4_body())));
  CHECK(!serves(one)); // the client's third connection
  CHECK(serves("PROXY TCP4 203.0.113.8 10.0.0.1 12345 8080\r\n"));
  CHECK(!serves("PROXY TCP4 nonsense\r\n"));
  CHECK(!serves(""));
  client silent(s.port());
  CHECK(silent.closed_within(3s)); // within server.header_timeout
}

TEST_CASE("A Unix socket is private to its group, and a stale one is replaced") {
  const auto folder =
      std::filesystem::temp_directory_path() / ("twill-listeners-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  const auto path = (folder / "t.sock").string();
  const auto address = "unix:" + path;
  {
    const auto sockets = listeners::open({address, "127.0.0.1:0"});
    struct stat about {};
    REQUIRE(::stat(path.c_str(), &about) == 0);
    CHECK((about.st_mode & 0777) == 0660);
    CHECK(sockets.all()[0].address() == address);
    CHECK(sockets.all()[0].is_local());
    CHECK(sockets.all()[1].is_local());
    CHECK(contains(fault_of(address), "Address already in use"));
  }
  CHECK(!std::filesystem::exists(path));
  {
    auto dead = listeners::open({address});
    ::close(dead.take(0)); // the socket file stays, as after a kill
    const auto again = listeners::open({address});
    CHECK(again.all().size() == 1);
  }
  std::ofstream(path) << "a file";
  CHECK(contains(fault_of(address), "not a socket"));
  CHECK(std::filesystem::exists(path));
  std::filesystem::remove_all(folder);
}

TEST_CASE("Listening on IPv4 and IPv6 at one port") {
  const auto first = listeners::open({"127.0.0.1:0"});
  const auto port = std::to_string(first.all()[0].port);
  try {
    const auto both = listeners::open({"[::1]:" + port, "127.0.0.2:" + port});
    CHECK(both.all()[0].address() == "[::1]:" + port);
    CHECK(both.all()[0].is_local());
  } catch (const std::runtime_error& error) {
    WARN("no IPv6 here: " << error.what());
  }
  CHECK(!listeners::open({"0.0.0.0:0"}).all()[0].is_local());
}
