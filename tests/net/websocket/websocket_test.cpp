// WebSocket over real loopback sockets: hand-made frames, both well-formed and malformed.
#include "tests/catch.hpp"
#include "tests/net/support/codec_support.hpp"
#include "tests/net/support/running_server.hpp"

#include <fstream>
#include <thread>
#include <unistd.h>

using namespace twill;
using namespace twill::testing;

namespace {

std::string submit(const std::string& id, const std::string& more = "") {
  return R"({"op":"submit","id":")" + id + R"(","prompt":"x")" + more + "}";
}

/// Frames of a stream until "done"; the text of them all.
std::string stream_text(client& c, const std::string& id) {
  std::string text;
  for (;;) {
    const auto frame = json(c.read_text());
    if (at(frame, "id") != value(id)) continue;
    if (const auto* part = frame.find("text")) text += *part->as_string();
    if (frame.find("done") != nullptr) return text;
  }
}

/// The next close frame's code; text frames before it are collected.
int read_close(client& c, std::string* texts = nullptr) {
  for (;;) {
    const auto frame = c.read_frame();
    if (frame.opcode == 1 && texts != nullptr) *texts += frame.payload;
    if (frame.opcode == 8) {
      c.send_frame(frame.payload.substr(0, 2), 8);
      return frame.close_code();
    }
  }
}

std::int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t total = 0;
  std::int64_t resident = 0;
  statm >> total >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

} // namespace

TEST_CASE("/v1/stream streams over a socket, several requests at once") {
  running_server s;
  client c(s.port());
  REQUIRE(c.upgrade("/v1/stream") == 101);
  c.send_frame(submit("a"));
  CHECK(stream_text(c, "a") == "Hello, world");
  for (int i = 0; i < 8; ++i)
    c.send_frame(submit("r" + std::to_string(i)));
  std::map<std::string, std::string> texts;
  for (int done = 0; done < 8;) {
    const auto frame = json(c.read_text());
    if (const auto* part = frame.find("text"))
      texts[*at(frame, "id").as_string()] += *part->as_string();
    if (frame.find("done") != nullptr) ++done;
  }
  CHECK(texts.size() == 8);
  for (const auto& entry : texts)
    CHECK(entry.second == "Hello, world");
}

TEST_CASE("Responses mode speaks over a socket") {
  running_server s;
  client c(s.port());
  REQUIRE(c.upgrade("/v1/responses") == 101);
  c.send_frame(R"({"type":"response.create","input":"hi"})");
  std::string last, id;
  int expected = 0;
  do {
    const auto frame = json(c.read_text());
    last = *at(frame, "type").as_string();
    CHECK(at(frame, "sequence_number") == value(expected++));
    if (last == "response.created") id = *at(frame, "response", "id").as_string();
  } while (last != "response.completed");
  // The log of the engine names the turn, and the socket that it came over.
  const std::string named = s.engine.submitted().back().client_id;
  CHECK_FALSE(named.starts_with("/"));
  CHECK(named.ends_with("/" + id));
}

TEST_CASE("Bad handshakes are refused in plain HTTP") {
  config::server_options o;
  o.api_keys = {"k"};
  running_server s(o);
  CHECK(client(s.port()).upgrade("/v1/stream") == 401);
  CHECK(client(s.port()).upgrade("/v1/stream", "Authorization: Bearer k\r\n") == 101);
  CHECK(client(s.port()).upgrade("/health", "Authorization: Bearer k\r\n") == 400);
  {
    client c(s.port()); // no key, wrong version
    c.send("GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer k\r\nConnection: "
           "Upgrade\r\n"
           "Upgrade: websocket\r\nSec-WebSocket-Version: 7\r\n\r\n");
    CHECK(c.read_reply().status >= 400);
    CHECK(c.closed_within(3s));
  }
  client c(s.port()); // frames before the handshake is answered
  c.send("GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer k\r\nConnection: "
         "Upgrade\r\n"
         "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
         "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n\x81\x80");
  CHECK(c.read_reply().status == 400);
}

TEST_CASE("Binary frames are refused with 1003 and a reason") {
  running_server s;
  client c(s.port());
  REQUIRE(c.upgrade("/v1/stream") == 101);
  c.send_frame("abc", 2);
  std::string texts;
  CHECK(read_close(c, &texts) == 1003);
  CHECK(contains(texts, "frames must be text, got a binary one"));
}

TEST_CASE("Broken frames are closed with their code") {
  running_server s;
  const auto code_of = [&](auto send) {
    client c(s.port());
    REQUIRE(c.upgrade("/v1/stream") == 101);
    send(c);
    return read_close(c);
  };
  CHECK(code_of([](client& c) { c.send_frame("{\"op\":\"\xff\xfe\"}"); }) == 1007);
  CHECK(code_of([](client& c) { c.send_frame(std::string(5u << 20, ' ')); }) == 1009);
  CHECK(code_of([](client& c) { c.send_frame("x", 3); }) == 1002); // reserved opcode
  CHECK(code_of([](client& c) { c.send_frame("x", 0); }) == 1002); // nothing to continue
  CHECK(code_of([](client& c) { c.send(std::string("\x81\x01x")); }) == 1002); // not masked
  client ten(s.port());
  REQUIRE(ten.upgrade("/v1/stream") == 101);
  try {
    ten.send_frame(std::string(10u << 20, ' ')); // the server may close before it is all sent
  } catch (const std::runtime_error&) {
  }
  CHECK(ten.closed_within(5s));
  client next(s.port());
  CHECK(next.get("/health").status == 200);
}

TEST_CASE("Fragmented messages are joined, with pings and other streams between") {
  running_server s;
  client c(s.port());
  REQUIRE(c.upgrade("/v1/stream") == 101);
  c.send_frame(R"({"op":"submit",)", 1, false);
  c.send_frame("are you there", 9);
  c.send_frame(R"("id":"f",)", 0, false);
  c.send_frame(R"("prompt":"x"})", 0, true);
  const auto pong = c.read_frame();
  CHECK(pong.opcode == 10);
  CHECK(pong.payload == "are you there");
  CHECK(stream_text(c, "f") == "Hello, world");
  c.send_frame(R"({"op":"submit",)", 1, false);
  c.send_frame(R"({"op":"ping"})", 1, true); // a new message inside a message
  CHECK(read_close(c) == 1002);
}

TEST_CASE("A message may arrive byte by byte") {
  running_server s;
  client c(s.port());
  REQUIRE(c.upgrade("/v1/stream") == 101);
  const std::string text = R"({"op":"ping"})";
  std::string frame = "\x81";
  frame += static_cast<char>(0x80 | text.size());
  frame += std::string(4, '\0') + text;
  for (const char byte : frame)
    c.send(std::string(1, byte));
  CHECK(c.read_text() == R"({"op":"pong"})");
}

TEST_CASE("Leaving a WebSocket cancels all it ran") {
  for (const bool politely : {false, true}) {
    running_server s({}, endless());
    client c(s.port());
    REQUIRE(c.upgrade("/v1/stream") == 101);
    for (int i = 0; i < 5; ++i)
      c.send_frame(submit(std::to_string(i)));
    REQUIRE(s.engine.wait_running(5));
    if (politely)
      c.send_frame("\x03\xe8", 8);
    else
      c.reset();
    CHECK(s.engine.wait_cancelled(5));
  }
}

TEST_CASE("After a cancel nothing of the request is sent") {
  running_server s({}, endless());
  client c(s.port());
  REQUIRE(c.upgrade("/v1/stream") == 101);
  c.send_frame(submit("a"));
  c.read_text();
  c.send_frame(R"({"op":"cancel","id":"a"})");
  for (;;)
    if (json(c.read_text()).find("cancelled") != nullptr) break;
  c.send_frame(R"({"op":"ping"})");
  CHECK(c.read_text() == R"({"op":"pong"})");
  CHECK(s.engine.running() == 0);
}

TEST_CASE("Credit holds a stream back over a socket") {
  running_server s({}, endless());
  client c(s.port());
  REQUIRE(c.upgrade("/v1/stream") == 101);
  c.send_frame(submit("a", R"(,"credit":5)"));
  std::size_t got = 0;
  while (got < 5)
    if (const auto frame = json(c.read_text()); frame.find("tokens") != nullptr)
      got += at(frame, "tokens").as_list()->size();
  CHECK(got == 5);
  REQUIRE(s.engine.wait_paused(1));
  c.send_frame(R"({"op":"ping"})");
  CHECK(c.read_text() == R"({"op":"pong"})");
  c.send_frame(R"({"op":"credit","id":"a","n":3})");
  got = 0;
  while (got < 3)
    got += at(json(c.read_text()), "tokens").as_list()->size();
  CHECK(got == 3);
}

TEST_CASE("A slow WebSocket reader is paused, resumed, and at last cut off with an error frame") {
  config::server_options o;
  o.max_write_queue_bytes = 64 * 1024;
  o.slow_reader_timeout = std::chrono::milliseconds(1000);
  auto play = endless();
  play.pieces = {std::string(8000, 'x')};
  play.step = 200us;
  running_server s(o, play);
  client c(s.port(), 4096);
  REQUIRE(c.upgrade("/v1/stream") == 101);
  c.send_frame(submit("a", R"(,"max_tokens":1000000)"));
  REQUIRE(s.engine.wait_paused(1, 10s));
  REQUIRE(s.engine.wait_stalled());
  const int resumed = s.engine.resumed_count();
  for (int i = 0; i < 2000 && s.engine.resumed_count() == resumed; ++i)
    c.read_text();
  CHECK(s.engine.resumed_count() > resumed);
  REQUIRE(s.engine.wait_cancelled(1, 10s)); // the client has stopped reading
  std::string texts;
  CHECK(read_close(c, &texts) == 1008);
  CHECK(contains(texts, "\"code\":\"slow_reader\""));
}

TEST_CASE("An idle WebSocket is pinged; one that does not answer is closed") {
  config::server_options o;
  o.idle_timeout = std::chrono::milliseconds(400);
  running_server s(o);
  client alive(s.port());
  REQUIRE(alive.upgrade("/v1/stream") == 101);
  for (int i = 0; i < 4; ++i) {
    const auto frame = alive.read_frame();
    REQUIRE(frame.opcode == 9);
    alive.send_frame(frame.payload, 10);
  }
  client dead(s.port());
  REQUIRE(dead.upgrade("/v1/stream") == 101);
  CHECK(dead.closed_within(4s));
}

TEST_CASE("Draining closes idle WebSockets with 1001 and lets streams end") {
  script play;
  play.repeat = 30;
  running_server s({}, play);
  client idle(s.port());
  REQUIRE(idle.upgrade("/v1/stream") == 101);
  client busy(s.port());
  REQUIRE(busy.upgrade("/v1/responses") == 101);
  busy.send_frame(R"({"type":"response.create","input":"hi"})");
  busy.read_text();
  s.server->drain();
  CHECK(read_close(idle) == 1001);
  std::string texts;
  CHECK(read_close(busy, &texts) == 1001);
  CHECK(contains(texts, "\"type\":\"response.completed\""));
  s.join();
}

TEST_CASE("Draining ends what is left with an error frame at the deadline") {
  config::server_options o;
  o.drain_timeout = std::chrono::milliseconds(200);
  running_server s(o, endless());
  client c(s.port());
  REQUIRE(c.upgrade("/v1/stream") == 101);
  c.send_frame(submit("a", R"(,"max_tokens":1000000)"));
  c.read_text();
  s.server->drain();
  std::string texts;
  CHECK(read_close(c, &texts) == 1001);
  CHECK(contains(texts, "\"code\":\"shutting_down\""));
  s.join();
}

TEST_CASE("A thousand idle WebSockets cost less than 32 KiB each") {
  running_server s;
  std::vector<std::unique_ptr<client>> sockets;
  const auto before = resident_bytes();
  int open = 0;
  for (int i = 0; i < 400; ++i) { // fewer than a thousand: a test may have 1,024 descriptors
    sockets.push_back(std::make_unique<client>(s.port()));
    open += sockets.back()->upgrade("/v1/stream") == 101 ? 1 : 0;
  }
  CHECK(open == 400);
  const auto each = (resident_bytes() - before) / 400;
  INFO(each << " bytes per socket, both ends");
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  CHECK(each < 32 * 1024);
#endif
  client c(s.port());
  REQUIRE(c.upgrade("/v1/stream") == 101);
  c.send_frame(submit("a"));
  CHECK(stream_text(c, "a") == "Hello, world");
}

TEST_CASE("Replies that nobody reads are bounded over all sockets") {
  config::server_options o;
  o.max_output_bytes = 1 << 20;
  running_server s(o);
  const auto warm_up = R"({"type":"response.create","generate":false,"input":"x","tools":[)" +
                       (R"({"type":"function","name":"f","parameters":{"note":")" +
                        std::string(900'000, 'n') + R"("}}]})");
  std::vector<std::unique_ptr<client>> silent;
  for (int i = 0; i < 3; ++i) {
    silent.push_back(std::make_unique<client>(s.port(), 4096));
    REQUIRE(silent.back()->upgrade("/v1/responses") == 101);
    silent.back()->send_frame(warm_up);
  }
  client c(s.port());
  const auto refused = [&] { return c.post("/v1/completions", R"({"prompt":"x"})").status == 503; };
  bool was_refused = false;
  for (int i = 0; i < 2000 && !was_refused; ++i) { // the replies take long under sanitizers
    was_refused = refused();
    std::this_thread::sleep_for(5ms);
  }
  CHECK(was_refused);
  CHECK(c.get("/health").status == 200);
  for (int i = 0; i < 400 && refused(); ++i)
    std::this_thread::sleep_for(10ms);
  CHECK(!refused()); // the sockets that read nothing are closed
  client reader(s.port());
  REQUIRE(reader.upgrade("/v1/responses") == 101);
  reader.send_frame(R"({"type":"response.create","input":"hi"})");
  CHECK(contains(reader.read_text(), "response.created"));
}

TEST_CASE("Messages that never end are bounded over all sockets, and others come through") {
  config::server_options o;
  o.max_body_bytes = mib;
  o.max_frame_bytes = 2 * mib; // which allows 32 MiB over all sockets
  o.threads = 2;
  running_server s(o);
  constexpr std::size_t n_sockets = 120, n_bytes = 1'900'000;
  const auto before = resident_bytes();
  std::vector<std::unique_ptr<client>> slow_clients;
  const std::string piece(n_bytes / 20, 'x');
  const auto header = [](char first, std::uint64_t payload_bytes) {
    std::string out{first, '\xff'};
    for (int shift = 56; shift >= 0; shift -= 8)
      out += static_cast<char>(payload_bytes >> shift);
    return out + std::string(4, '\0'); // the mask
  };
  std::size_t n_cut = 0;
  for (std::size_t i = 0; i < n_sockets; ++i) {
    auto& c = *slow_clients.emplace_back(std::make_unique<client>(s.port()));
    std::string first;
    if (i % 4 == 0) {
      c.send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n");
    } else {
      REQUIRE(c.upgrade("/v1/stream") == 101);
      if (i % 4 == 1) c.send(header('\x81', n_bytes + 1)); // one frame that never ends
    }
    for (std::size_t sent = 0; sent + piece.size() <= (i % 4 == 0 ? mib - 100'000 : n_bytes);
         sent += piece.size()) {
      std::string part;
      if (i % 4 >= 2) part = header(sent == 0 ? '\x01' : '\x00', piece.size()); // fragments
      part += piece;
      if (i % 4 == 3) part += std::string("\x89\x80\0\0\0\0", 6); // a ping between them
      if (c.try_send(part)) continue;
      ++n_cut;
      break;
    }
  }
  const auto grown = resident_bytes() - before;
  CAPTURE(grown, n_cut);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // sanitizers keep freed memory
  CHECK(grown < 100 * mib);                                         // of up to 187 MiB sent
#endif
  std::this_thread::sleep_for(1100ms);
  client ws(s.port()), http(s.port());
  REQUIRE(ws.upgrade("/v1/stream") == 101);
  ws.send_frame(R"({"op":"ping","filling":")" + std::string(n_bytes, 'x') + "\"}");
  CHECK(contains(ws.read_text(), "pong"));
  CHECK(http.post("/v1/completions", R"({"prompt":")" + std::string(900'000, 'x') + "\"}").status ==
        200);
}

TEST_CASE("A WebSocket message that trickles ends its socket, one that comes in time does not") {
  config::server_options o;
  o.header_timeout = 300ms;
  o.body_rate_bytes = 10'000;
  running_server s(o);
  const bool fragments = GENERATE(false, true);
  client slow(s.port()), fair(s.port());
  REQUIRE(slow.upgrade("/v1/stream") == 101);
  REQUIRE(fair.upgrade("/v1/stream") == 101);
  const std::string message = R"({"op":"ping","filling":")" + std::string(9'000, 'x') + "\"}";
  fair.send_frame(message.substr(0, 8'000), 1, false);
  const auto began = std::chrono::steady_clock::now();
  std::string received;
  if (!fragments) slow.send(std::string("\x81\xfe\x10\x00\0\0\0\0", 8));
  for (int i = 0; i < 40 && std::chrono::steady_clock::now() - began < 500ms; ++i) {
    if (fragments ? !slow.try_send(
                        std::string("\x01\x81\0\0\0\0{", 7).replace(0, 1, i ? "\0" : "\x01", 1))
                  : !slow.try_send("{"))
      break;
    if (fragments && !slow.try_send(std::string("\x89\x80\0\0\0\0", 6))) break;
    std::this_thread::sleep_for(20ms);
  }
  CHECK(read_close(slow, &received) == 1008);
  CHECK(contains(received, "server.body_rate"));
  CHECK(std::chrono::steady_clock::now() - began < 5s);
  fair.send_frame(message.substr(8'000), 0); // after 0.5 s of the allowed 1.1 s
  CHECK(contains(fair.read_text(), "pong"));
}

TEST_CASE("With the smallest messages allowed, clients may close in every way") {
  config::server_options options;
  options.max_frame_bytes = 1024;
  running_server s(options);
  for (int way = 0; way < 3; ++way) {
    client c(s.port());
    REQUIRE(c.upgrade("/v1/stream") == 101);
    if (way == 0) c.send_frame("binary", 2); // the server closes, and drops what still comes
    if (way == 1) c.send_frame(std::string(2000, ' '));
    if (way == 2)
      c.shutdown_send();
    else
      c.join_close();
    CHECK(c.closed_within(20s));
  }
  client next(s.port());
  CHECK(next.get("/health").status == 200);
}
