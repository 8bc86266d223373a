// TLS over real loopback sockets: which protocols are spoken, what is refused, and certificates
// that are replaced.
#include "tests/catch.hpp"
#include "tests/net/support/codec_support.hpp"
#include "tests/net/support/running_server.hpp"
#include "tests/net/support/tls_client.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <fstream>
#include <optional>

#include "net/connection/tls_stream.hpp"
#include "net/random_id.hpp"

using namespace twill;
using namespace twill::testing;
namespace fs = std::filesystem;

namespace {

const std::string chat_stream = R"({"messages":[{"role":"user","content":"hi"}],"stream":true})";

/// Files with a certificate and a key, for as long as a test runs.
struct pair_of_files {
  fs::path folder = fs::temp_directory_path() / net::make_id("twill-tls-");

  explicit pair_of_files(const identity& first) {
    fs::create_directory(folder);
    put(first);
  }
  ~pair_of_files() { fs::remove_all(folder); }

  std::string certificate() const { return (folder / "tls.pem").string(); }
  std::string key() const { return (folder / "tls.key").string(); }
  void put(const identity& next) const {
    std::ofstream(certificate()) << next.certificate;
    std::ofstream(key()) << next.key;
  }
  config::options options() const {
    config::options o;
    o.server.tls_certificate = certificate();
    o.server.tls_key = key();
    return o;
  }
};

/// Made once, since generating a key takes long.
const identity& first() {
  static const identity made = make_identity("first");
  return made;
}

struct tls_server {
  pair_of_files files{first()};
  running_server server;

  explicit tls_server(script play = {}) : tls_server(std::move(play), [](config::options&) {}) {}
  template <class Change>
  tls_server(script play, Change change)
      : server(std::move(play), changed(files.options(), change)) {}

  std::uint16_t port() const { return server.port(); }

private:
  template <class Change>
  static config::options changed(config::options o, Change change) {
    change(o);
    return o;
  }
};

result<std::string, file_errc> from_disk(const std::string& path) {
  return read_file(path, 1 << 20);
}

std::string fault_of_handshake(std::uint16_t port, const tls_client::options& how) {
  try {
    const tls_client c(port, how);
    return {};
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

/// The error of credentials made from this pair; empty if the pair can be used.
std::string fault_of(const std::string& certificate, const std::string& key) {
  try {
    const net::tls_credentials made("the.pem", "the.key",
                                    [&](const std::string& path) -> result<std::string, file_errc> {
                                      return path == "the.pem" ? certificate : key;
                                    });
    return {};
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

/// twill's own TLS client. Each call runs the client's operation until it has ended.
struct own_client {
  net::asio::io_context io;
  net::tls_stream stream;

  own_client(std::uint16_t port, const std::string& host, const std::string& trusted)
      : stream(connected(io, port), net::make_client_context(trusted), host) {}

  /// Gives `begin` the completion handler to call at the end. Returns the operation's error.
  template <class Begin>
  net::error_code run(Begin begin) {
    std::optional<net::error_code> outcome;
    begin(net::io_completion([&](net::error_code error, std::size_t) { outcome = error; }));
    CHECK(!outcome.has_value()); // the handler must not run inside the call that began it
    io.restart();
    io.run_for(5s);
    REQUIRE(outcome.has_value());
    return *outcome;
  }
  net::error_code shake_hands() {
    return run([this](net::io_completion done) { stream.handshake(std::move(done)); });
  }

private:
  static net::client_socket connected(net::asio::io_context& io, std::uint16_t port) {
    net::client_socket socket(io);
    socket.connect(net::tcp::endpoint(net::asio::ip::address_v4::loopback(), port));
    return socket;
  }
};

/// What our own client's verification says of the server's certificate for the name `host`.
std::string verdict_on(std::uint16_t port, const std::string& host, const std::string& trusted) {
  own_client c(port, host, trusted);
  const auto error = c.shake_hands();
  CHECK(c.stream.verdict().empty() == !error.failed());
  return c.stream.verdict();
}

} // namespace

TEST_CASE("HTTP is spoken over TLS, on a connection that stays open") {
  tls_server s;
  tls_client c(s.port(), {first().certificate, {"h2", "http/1.1"}});
  CHECK(c.version() == "TLSv1.3");
  CHECK(c.protocol() == "http/1.1");
  CHECK(c.get("/health").status == 200);
  CHECK(contains(c.post("/v1/completions", R"({"prompt":"x"})").body, "Hello, world"));
  const auto streamed = c.post("/v1/chat/completions", chat_stream);
  CHECK(streamed.status == 200);
  CHECK(streamed.body.ends_with("data: [DONE]\n\n"));
}

TEST_CASE("Over TLS a client gets a close_notify before the connection closes") {
  tls_server s;
  tls_client c(s.port());
  CHECK(c.get("/health", "Connection: close\r\n").status == 200);
  CHECK(c.closed_within(3s));
  CHECK(c.end_was_reported()); // otherwise a client could not distinguish an end from a cut
}

TEST_CASE("Bodies and replies of many records come whole over TLS") {
  tls_server s(script{}, [](config::options& o) { o.batches.max_folder_bytes = 8 * mib; });
  tls_client c(s.port());
  std::string big;
  while (big.size() < 3 * mib)
    big += std::to_string(big.size()) + '\n';
  const auto stored = c.post("/v1/files",
                             "--XX\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch"
                             "\r\n--XX\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n" +
                                 big + "\r\n--XX--\r\n",
                             "Content-Type: multipart/form-data; boundary=XX\r\n");
  REQUIRE(stored.status == 200);
  const auto id = *at(json(stored.body), "id").as_string();
  CHECK(c.get("/v1/files/" + id + "/content").body == big);
  CHECK(c.get("/health").status == 200);
}

TEST_CASE("A WebSocket streams over TLS") {
  tls_server s;
  tls_client c(s.port());
  REQUIRE(c.upgrade("/v1/stream") == 101);
  c.send_frame(R"({"op":"submit","id":1,"prompt":"x"})");
  std::string text;
  for (bool done = false; !done;) {
    const auto frame = json(c.read_text());
    if (const auto* part = frame.find("text")) text += *part->as_string();
    done = frame.find("done") != nullptr;
  }
  CHECK(text == "Hello, world");
  c.send_frame(std::string("\x03\xe8", 2), 8);
  CHECK(c.read_frame().close_code() == 1000);
  CHECK(c.closed_within(3s));
}

TEST_CASE("A slow reader over TLS is paused, and resumed when it reads again") {
  auto play = endless();
  play.pieces = {std::string(8000, 'x')};
  play.step = 200us;
  tls_server s(play, [](config::options& o) { o.server.max_write_queue_bytes = 16 * 1024; });
  tls_client c(s.port(), {{}, {}, false, 4096});
  c.send(post_text("/v1/chat/completions", chat_stream));
  REQUIRE(s.server.engine.wait_paused(1, 10s));
  REQUIRE(s.server.engine.wait_stalled());
  const int resumed = s.server.engine.resumed_count();
  for (int i = 0; i < 2000 && s.server.engine.resumed_count() == resumed; ++i)
    c.read_until("\n\n");
  CHECK(s.server.engine.resumed_count() > resumed);
}

TEST_CASE("Leaving a TLS connection cancels what it ran") {
  tls_server s(endless());
  tls_client c(s.port());
  c.send(post_text("/v1/chat/completions", chat_stream));
  c.read_until("Hello");
  c.reset();
  CHECK(s.server.engine.wait_cancelled(1));
}

TEST_CASE("Older protocols than TLS 1.2 and others than HTTP/1.1 are refused") {
  tls_server s;
  tls_client::options old;
  old.old = true;
  CHECK(contains(fault_of_handshake(s.port(), old), "protocol version"));
  CHECK(contains(fault_of_handshake(s.port(), {{}, {"h2"}}), "no application protocol"));
  CHECK(tls_client(s.port()).get("/health").status == 200);
}

TEST_CASE("What is no TLS is closed on a TLS port, and hurts nobody") {
  tls_server s(script{}, [](config::options& o) {
    o.server.header_timeout = std::chrono::milliseconds(1000);
  });
  tls_client good(s.port());
  client plain(s.port()), silent(s.port()), halfway(s.port());
  plain.send("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
  halfway.send(std::string_view("\x16\x03\x01\x02\x00", 5));
  CHECK_THROWS(plain.read_until("200 OK"));
  client gone(s.port());
  gone.send("\x16");
  gone.reset();
  CHECK(good.get("/health").status == 200);
  CHECK(silent.closed_within(5s)); // within server.header_timeout
  CHECK(halfway.closed_within(5s));
  CHECK(good.get("/health").status == 200);
  CHECK(tls_client(s.port()).get("/health").status == 200);
}

TEST_CASE("Stopping ends connections whose TLS handshake is not over") {
  tls_server s;
  client silent(s.port());
  CHECK(tls_client(s.port()).get("/health").status == 200);
  s.server.server->stop();
  s.server.join();
  CHECK(silent.closed_within(3s));
}

TEST_CASE("A changed certificate serves new connections, and old ones stay open") {
  tls_server s;
  tls_client before(s.port(), {first().certificate});
  CHECK(before.server_name() == "first");
  const auto second = make_identity("second");
  s.files.put(second);
  CHECK(tls_client(s.port()).server_name() == "first");
  CHECK(s.server.server->reload_certificate(from_disk).empty());
  tls_client after(s.port(), {second.certificate});
  CHECK(after.server_name() == "second");
  CHECK(after.get("/health").status == 200);
  CHECK(before.get("/health").status == 200);
  CHECK(contains(fault_of_handshake(s.port(), {first().certificate}), "certificate verify failed"));
}

TEST_CASE("A pair of files that cannot be used leaves the old certificate in force") {
  tls_server s;
  const auto& reload = [&] { return s.server.server->reload_certificate(from_disk); };
  s.files.put({make_identity("other").certificate, first().key});
  CHECK(contains(reload(), "`server.tls_key` must be the key of"));
  fs::remove(s.files.key());
  CHECK(contains(reload(), "`server.tls_key` cannot be read"));
  fs::remove(s.files.certificate());
  CHECK(contains(reload(), "`server.tls_certificate` cannot be read"));
  tls_client c(s.port(), {first().certificate});
  CHECK(c.server_name() == "first");
  CHECK(c.get("/health").status == 200);
}

TEST_CASE("Without TLS there is no certificate to read anew") {
  running_server s;
  CHECK(s.server->reload_certificate(from_disk).empty());
}

TEST_CASE("Certificates and keys that cannot be used are named with their file") {
  CHECK(fault_of(first().certificate, first().key).empty());
  const auto no_certificate = fault_of("nonsense", first().key);
  CHECK(contains(no_certificate, "`server.tls_certificate` must be a PEM file"));
  CHECK(contains(no_certificate, "the.pem"));
  CHECK(contains(fault_of(first().key, first().key), "`server.tls_certificate` must be"));
  const auto no_key = fault_of(first().certificate, "nonsense");
  CHECK(contains(no_key, "`server.tls_key` must be a PEM file"));
  CHECK(contains(no_key, "the.key"));
  CHECK(contains(fault_of(first().certificate, locked_key(first())), "no passphrase"));
  CHECK(contains(fault_of(first().certificate, make_identity("other").key),
                 "must be the key of `server.tls_certificate`"));
}

TEST_CASE("A client that trusts the authority alone is shown the certificates in between") {
  const auto authority = make_identity("authority");
  const auto between = make_identity("between", &authority);
  auto own = make_identity("own", &between);
  own.certificate += between.certificate;
  tls_server s;
  s.files.put(own);
  REQUIRE(s.server.server->reload_certificate(from_disk).empty());
  tls_client c(s.port(), {authority.certificate});
  CHECK(c.server_name() == "own");
}

TEST_CASE("Our client takes a trusted certificate for the host that it wants, and no other") {
  tls_server s;
  const auto ours = s.files.certificate();
  CHECK(verdict_on(s.port(), "localhost", ours).empty());
  CHECK(verdict_on(s.port(), "127.0.0.1", ours).empty());
  CHECK(contains(verdict_on(s.port(), "elsewhere.example", ours), "ostname mismatch"));
  CHECK(contains(verdict_on(s.port(), "127.0.0.2", ours), "IP address mismatch"));
  const pair_of_files other(make_identity("other"));
  CHECK(!verdict_on(s.port(), "localhost", other.certificate()).empty());
}

TEST_CASE("An operation of a TLS stream calls back once the function that began it is over") {
  tls_server s;
  own_client c(s.port(), "localhost", s.files.certificate());
  REQUIRE(!c.shake_hands().failed());
  const std::string request =
      "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  CHECK(!c.run([&](net::io_completion done) {
            c.stream.write_some(net::asio::buffer(request), std::move(done));
          }).failed());
  std::string reply(4096, '\0');
  CHECK(!c.run([&](net::io_completion done) {
            c.stream.read_some(net::asio::buffer(reply), std::move(done));
          }).failed());
  CHECK(reply.starts_with("HTTP/1.1 200"));
  CHECK(c.run([&](net::io_completion done) {
    c.stream.read_some(net::asio::buffer(reply), std::move(done));
  }) == net::asio::error::eof); // the close was announced by close_notify
  net::error_code ignored;
  c.stream.socket().close(ignored);
  CHECK(c.run([&](net::io_completion done) {
    c.stream.read_some(net::asio::buffer(reply), std::move(done));
  }) == net::asio::error::bad_descriptor);
}

TEST_CASE("The administrators' address speaks TLS as well") {
  tls_server s(script{}, [](config::options& o) { o.server.admin_listen = "127.0.0.1:0"; });
  const auto address = s.server.server->admin_address();
  const auto port = static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  // Without tenants nobody is an administrator.
  CHECK(tls_client(port, {first().certificate}).get("/admin").status == 403);
  client plain(port);
  plain.send("GET /admin HTTP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK_THROWS(plain.read_until("HTTP/1.1"));
}
