// HTTP over real loopback sockets, with a scripted engine behind the server.
#include "net/api_keys.hpp"
#include "net/connection/open_sockets.hpp"
#include "tests/catch.hpp"
#include "tests/net/support/codec_support.hpp"
#include "tests/net/support/running_server.hpp"

using namespace twill;
using namespace twill::testing;

namespace {

const std::string chat_body = R"({"messages":[{"role":"user","content":"hi"}]})";
const std::string chat_stream = R"({"messages":[{"role":"user","content":"hi"}],"stream":true})";
const std::string completion = R"({"prompt":"x"})";

script slow_start() {
  script s;
  s.start_delay = 1h;
  return s;
}

} // namespace

TEST_CASE("The plain routes answer") {
  running_server s;
  client c(s.port());
  CHECK(c.get("/health").body == R"({"status":"ok"})");
  CHECK(c.get("/ready").status == 200);
  CHECK(contains(c.get("/").header("content-type"), "text/html"));
  CHECK(c.get("/version").body == R"({"version":")" TWILL_VERSION R"("})");
  CHECK(contains(c.get("/metrics").body,
                 "twill_open_sockets{engine=\"0\",model_name=\"test-model\"} 1\n"));
  CHECK(c.get("/v1/models").status == 200);
  CHECK(c.get("/v1/models/test-model?x=y").status == 200);
  CHECK(c.get("/v1/models/other").status == 404);
  CHECK(c.post("/tokenize", R"({"prompt":"a"})").body ==
        R"({"count":2,"max_model_len":4096,"tokens":[1,97],"token_strs":null})");
  CHECK(c.post("/detokenize", R"({"tokens":[97]})").status == 200);
}

TEST_CASE("A server with a name sends it with its version") {
  config::server_options named;
  named.name = "gpu1";
  running_server s(named);
  client c(s.port());
  CHECK(at(json(c.get("/version").body), "name") == value("gpu1"));
}

TEST_CASE("The chat page and its files are served under a strict policy") {
  running_server s;
  client c(s.port());
  const auto page = c.get("/");
  CHECK(page.status == 200);
  CHECK(page.header("content-type") == "text/html; charset=utf-8");
  CHECK(contains(page.body, "src=\"page/chat.js\""));
  const auto policy = page.header("content-security-policy");
  CHECK(contains(policy, "default-src 'none'; script-src 'self'; style-src 'self'"));
  CHECK(contains(policy, "frame-ancestors 'none'"));
  CHECK(!contains(policy, "unsafe"));
  CHECK(page.header("x-content-type-options") == "nosniff");
  CHECK(page.header("referrer-policy") == "no-referrer");
  CHECK(c.get("/page/chat.js").header("content-type") == "text/javascript; charset=utf-8");
  CHECK(c.get("/page/look.css").header("content-type") == "text/css; charset=utf-8");
  CHECK(c.get("/page/icon.svg").header("content-type") == "image/svg+xml");
  CHECK(c.get("/page/none.js").status == 404);
  CHECK(c.get("/page/../endpoints.cpp").status == 404);
  CHECK(contains(c.get("/routes").body, "/v1/chat/completions"));
}

TEST_CASE("A file of the chat page that a browser still has is not sent again") {
  running_server s;
  client c(s.port());
  const auto first = c.get("/page/chat.js");
  CHECK(first.header("cache-control") == "no-cache");
  const auto tag = first.header("etag");
  REQUIRE(tag.size() > 10);
  c.send("GET /page/chat.js HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: " + tag + "\r\n\r\n");
  const auto again = c.read_reply(true);
  CHECK(again.status == 304);
  CHECK(again.header("etag") == tag);
  CHECK(again.header("content-length").empty());
  c.send("GET /page/chat.js HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: \"other\"\r\n\r\n");
  CHECK(c.read_reply().body == first.body);
}

TEST_CASE("Whole and streamed replies hold the same text") {
  running_server s;
  client c(s.port());
  const auto whole = c.post("/v1/chat/completions", chat_body);
  CHECK(whole.status == 200);
  CHECK(at(json(whole.body), "choices", 0, "message", "content") == value("Hello, world"));
  const auto streamed = c.post("/v1/chat/completions", chat_stream);
  CHECK(streamed.header("content-type") == "text/event-stream; charset=utf-8");
  CHECK(streamed.header("transfer-encoding") == "chunked");
  CHECK(streamed.body.ends_with("data: [DONE]\n\n"));
  const auto text = c.post("/v1/completions", completion);
  CHECK(at(json(text.body), "choices", 0, "text") == value("Hello, world"));
  const auto response = c.post("/v1/responses", R"({"input":"hi","stream":true})");
  CHECK(contains(response.body, "event: response.completed\n"));
}

TEST_CASE("Unknown paths and methods are refused in JSON, and the connection stays open") {
  running_server s;
  client c(s.port());
  auto r = c.get("/nope");
  CHECK(r.status == 404);
  CHECK(at(json(r.body), "error", "code") == value("unknown_route"));
  r = c.get("/v1/chat/completions");
  CHECK(r.status == 405);
  CHECK(r.header("allow") == "POST, OPTIONS");
  c.send("DELETE /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK(c.read_reply().status == 405);
  c.send("HEAD /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
  r = c.read_reply(true);
  CHECK(r.status == 200);
  CHECK(r.header("content-length") == "15");
  c.send("OPTIONS /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n\r\n");
  r = c.read_reply();
  CHECK(r.status == 204);
  CHECK(r.header("allow") == "POST, OPTIONS");
  CHECK(c.get("/v1/stream").status == 426);
  CHECK(c.get("/health").status == 200);
}

TEST_CASE("A bad body gets 400 and the next request is served") {
  running_server s;
  client c(s.port());
  for (const std::string body :
       {"", "{", "[]", "{\"messages\":5}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"temperature\":NaN}"}) {
    const auto r = c.post("/v1/chat/completions", body);
    CHECK(r.status == 400);
    CHECK(at(json(r.body), "error", "type") == value("invalid_request_error"));
  }
  CHECK(c.post("/v1/chat/completions", R"({"model":"gpt","messages":[]})").status == 404);
  CHECK(c.post("/v1/chat/completions", chat_body).status == 200);
}

TEST_CASE("A compressed body gets 415 and what is taken instead, an uncoded one is served") {
  running_server s;
  client c(s.port());
  for (const std::string coding : {"gzip", "deflate", "br", "zstd", "x-gzip", "GZIP",
                                   "identity, gzip", "gzip\r\nContent-Encoding: identity"}) {
    INFO(coding);
    const auto r =
        c.post("/v1/chat/completions", "\x1f\x8b\x08", "Content-Encoding: " + coding + "\r\n");
    CHECK(r.status == 415);
    CHECK(r.header("accept-encoding") == "identity");
    CHECK(contains(r.body, "must be sent without compression, got Content-Encoding"));
    CHECK(contains(r.body, R"("code":"unsupported_content_encoding")"));
  }
  for (const std::string coding : {"identity", "Identity ", "", "identity, identity"}) {
    INFO(coding);
    CHECK(
        c.post("/v1/chat/completions", chat_body, "Content-Encoding: " + coding + "\r\n").status ==
        200);
  }
}

TEST_CASE("A slash at the end of a path changes nothing") {
  running_server s;
  client c(s.port());
  CHECK(c.post("/v1/chat/completions/", chat_body).status == 200);
  CHECK(c.get("/v1/models/").body == c.get("/v1/models").body);
  CHECK(c.get("/v1/models/test-model/").body == c.get("/v1/models/test-model").body);
  CHECK(c.get("/health/").status == 200);
  CHECK(c.get("/").status == 200);
  CHECK(c.get("/health//").status == 404);
  CHECK(c.get("/v1/completions/").status == 405);
  CHECK(client(s.port()).upgrade("/v1/stream/") == 101);
}

TEST_CASE("A stream that is silent gets comments, and its events are as ever") {
  config::server_options o;
  o.keep_alive = 20ms;
  script play;
  play.start_delay = 100ms;
  play.step = 50ms;
  running_server s(o, play);
  client c(s.port());
  const auto r = c.post("/v1/chat/completions", chat_stream);
  CHECK(r.status == 200);
  CHECK(r.body.starts_with(": keep-alive\n\n"));
  std::string events;
  for (std::size_t at = 0; at < r.body.size();) {
    const auto end = r.body.find("\n\n", at) + 2;
    const auto one = r.body.substr(at, end - at);
    if (one != ": keep-alive\n\n") events += one.substr(0, one.find("\"created\"")) + "\n";
    at = end;
  }
  CHECK(contains(events, "data: [DONE]"));
  CHECK(!contains(events, "keep-alive"));
  CHECK(std::count(r.body.begin(), r.body.end(), '\n') > 10);
}

TEST_CASE("A whole reply that would gather more than all output may take is refused at once") {
  config::server_options options;
  options.max_output_bytes = 1 << 20;
  running_server s(options);
  client c(s.port());
  const auto asks = [](const std::string& fields) {
    return R"({"prompt":"x","logprobs":20,)" + fields + "}";
  };
  const auto refused = c.post("/v1/completions", asks(R"("max_tokens":1000,"n":2)"));
  CHECK(refused.status == 400);
  CHECK(at(json(refused.body), "error", "param") == value("logprobs"));
  CHECK(contains(refused.body, "server.max_output"));
  // Each prompt would fit, but not all of them.
  CHECK(c.post("/v1/completions", R"({"prompt":["a","b","c","d"],"logprobs":20,"max_tokens":500})")
            .status == 400);
  CHECK(c.post("/v1/completions", asks(R"("max_tokens":500)")).status == 200);
  for (const char* fits : {R"("max_tokens":1000,"n":2,"stream":true)", R"("max_tokens":100,"n":2)"})
    CHECK(c.post("/v1/completions", asks(fits)).status == 200);
}

TEST_CASE("X-Request-Id is echoed, or made") {
  running_server s;
  client c(s.port());
  CHECK(c.get("/health", "X-Request-Id: mine-1\r\n").header("x-request-id") == "mine-1");
  CHECK(c.get("/health").header("x-request-id").starts_with("req_"));
  c.post("/v1/completions", completion, "X-Request-Id: mine-2\r\n");
  CHECK(s.engine.submitted().back().client_id == "mine-2");
}

TEST_CASE("With API keys configured, a key is needed where it matters") {
  config::server_options o;
  o.api_keys = {"secret"};
  running_server s(o);
  client c(s.port());
  const auto refused = c.get("/v1/models");
  CHECK(refused.status == 401);
  CHECK(at(json(refused.body), "error", "code") == value("invalid_api_key"));
  CHECK(c.post("/v1/chat/completions", chat_body, "Authorization: Bearer wrong\r\n").status == 401);
  CHECK(c.post("/v1/chat/completions", chat_body, "Authorization: Bearer secret\r\n").status ==
        200);
  CHECK(s.engine.submitted().back().tenant == "key-" + net::digest_of("secret").substr(0, 12));
  CHECK(c.get("/health").status == 200);
  CHECK(c.get("/ready").status == 200);
  CHECK(c.get("/metrics").status == 200);
}

TEST_CASE("A refusal before the first byte has its status, also for streams") {
  script play;
  play.refusal = actors::request_error{actors::errc::queue_full, "too many requests wait", ""};
  running_server s({}, play);
  client c(s.port());
  for (const auto& body : {chat_body, chat_stream}) {
    const auto r = c.post("/v1/chat/completions", body);
    CHECK(r.status == 429);
    CHECK(r.header("retry-after") == "1");
  }
  CHECK(c.post("/v1/completions", R"({"prompt":["a","b"]})").status == 429);
}

TEST_CASE("A failure in mid-stream is an event, and the connection stays open") {
  script play;
  play.failure = actors::request_error{actors::errc::executor_failed, "boom", ""};
  running_server s({}, play);
  client c(s.port());
  const auto r = c.post("/v1/chat/completions", chat_stream);
  CHECK(r.status == 200);
  CHECK(contains(r.body, R"(data: {"error":{"message":"boom")"));
  CHECK(r.body.ends_with("data: [DONE]\n\n"));
  CHECK(c.post("/v1/chat/completions", chat_body).status == 500);
}

TEST_CASE("While loading, /ready and requests get 503") {
  running_server s;
  s.engine.set_state(actors::engine_state::loading);
  client c(s.port());
  const auto r = c.get("/ready");
  CHECK(r.status == 503);
  CHECK(contains(r.body, "loading: as scripted"));
  CHECK(c.get("/health").status == 200);
  CHECK(c.post("/v1/chat/completions", chat_body).status == 503);
}

TEST_CASE("Requests sent ahead are answered in order") {
  running_server s;
  client c(s.port());
  std::string all;
  for (int i = 0; i < 50; ++i)
    all += i % 3 == 0 ? post_text("/v1/completions", completion,
                                  "X-Request-Id: n" + std::to_string(i) + "\r\n")
                      : "GET /health HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: n" +
                            std::to_string(i) + "\r\n\r\n";
  c.send(all);
  for (int i = 0; i < 50; ++i) {
    const auto r = c.read_reply();
    CHECK(r.status == 200);
    CHECK(r.header("x-request-id") == "n" + std::to_string(i));
  }
}

TEST_CASE("A request may arrive byte by byte") {
  running_server s;
  client c(s.port());
  for (const char byte : post_text("/v1/completions", completion))
    c.send(std::string(1, byte));
  CHECK(c.read_reply().status == 200);
}

TEST_CASE("Chunked bodies and Expect: 100-continue work") {
  running_server s;
  client c(s.port());
  c.send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: "
         "chunked\r\n\r\n6\r\n{\"prom\r\n8\r\npt\":\"x\"}\r\n0\r\n\r\n");
  CHECK(c.read_reply().status == 200);
  c.send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 14\r\nExpect: "
         "100-continue\r\n\r\n");
  CHECK(c.read_reply().status == 100);
  c.send(completion);
  CHECK(c.read_reply().status == 200);
}

TEST_CASE("HTTP/1.0 and Connection: close are served and closed") {
  running_server s;
  {
    client c(s.port());
    c.send("GET /health HTTP/1.0\r\n\r\n");
    CHECK(c.read_reply().status == 200);
    CHECK(c.closed_within(3s));
  }
  client c(s.port());
  c.send("POST /v1/chat/completions HTTP/1.0\r\nContent-Length: " +
         std::to_string(chat_stream.size()) + "\r\n\r\n" + chat_stream);
  const auto r = c.read_reply();
  CHECK(r.body.ends_with("data: [DONE]\n\n"));
  CHECK(!contains(r.body, "\r\n"));
}

TEST_CASE("A 100 MB body is refused at its header, without being kept") {
  running_server s;
  client c(s.port());
  c.send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 104857600\r\n\r\n");
  const std::string block(1 << 16, 'x');
  for (int i = 0; i < 64 && c.try_send(block); ++i) { // a part is sent nevertheless
  }
  const auto r = c.read_reply();
  CHECK(r.status == 413);
  CHECK(contains(r.body, "body must be at most 16777216 bytes"));
  client chunked(s.port());
  chunked.send(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 400 && chunked.try_send("10000\r\n" + block + "\r\n"); ++i) {
  }
  CHECK(chunked.read_reply().status == 413);
  client next(s.port());
  CHECK(next.get("/health").status == 200);
}

TEST_CASE("Oversized headers get 431, garbage gets 400") {
  running_server s;
  client big(s.port());
  big.send("GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(40000, 'y') + "\r\n\r\n");
  CHECK(big.read_reply().status == 431);
  CHECK(big.closed_within(3s));
  client garbage(s.port());
  garbage.send("\x16\x03\x01 this is no HTTP\r\n\r\n");
  CHECK(garbage.read_reply().status == 400);
  CHECK(garbage.closed_within(3s));
}

TEST_CASE("Leaving cancels: while queued, while streaming, while waiting for a whole reply") {
  SECTION("queued") {
    running_server s({}, slow_start());
    client c(s.port());
    c.send(post_text("/v1/chat/completions", chat_body));
    REQUIRE(s.engine.wait_running(1));
    c.close();
    CHECK(s.engine.wait_cancelled(1));
  }
  SECTION("streaming") {
    running_server s({}, endless());
    client c(s.port());
    c.send(post_text("/v1/chat/completions", chat_stream));
    c.read_until("Hello");
    c.reset();
    CHECK(s.engine.wait_cancelled(1));
  }
  SECTION("whole reply, several prompts") {
    running_server s({}, endless());
    client c(s.port());
    c.send(post_text("/v1/completions", R"({"prompt":["a","b","c"],"max_tokens":100000})"));
    REQUIRE(s.engine.wait_running(3));
    c.shutdown_send();
    CHECK(s.engine.wait_cancelled(3));
  }
  SECTION("with pipelined bytes behind") {
    running_server s({}, endless());
    client c(s.port());
    c.send(post_text("/v1/chat/completions", chat_stream) +
           "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
    c.read_until("Hello");
    c.close();
    CHECK(s.engine.wait_cancelled(1));
  }
}

TEST_CASE("A slow reader is paused, and resumed when it reads again") {
  config::server_options o;
  o.max_write_queue_bytes = 16 * 1024;
  auto play = endless();
  play.pieces = {std::string(8000, 'x')};
  play.step = 200us;
  running_server s(o, play);
  client c(s.port(), 4096);
  c.send(post_text("/v1/chat/completions", chat_stream));
  REQUIRE(s.engine.wait_paused(1, 10s));
  REQUIRE(s.engine.wait_stalled()); // the kernel's buffers are full as well
  const int resumed = s.engine.resumed_count();
  for (int i = 0; i < 2000 && s.engine.resumed_count() == resumed; ++i)
    c.read_until("\n\n");
  CHECK(s.engine.resumed_count() > resumed);
}

TEST_CASE("A reader that stays slow is cut off, others are unharmed") {
  config::server_options o;
  o.max_write_queue_bytes = 16 * 1024;
  o.slow_reader_timeout = std::chrono::milliseconds(300);
  auto play = endless();
  play.pieces = {std::string(8000, 'x')};
  play.step = 200us;
  running_server s(o, play);
  client c(s.port(), 4096);
  c.send(post_text("/v1/chat/completions", chat_stream));
  CHECK(s.engine.wait_cancelled(1, 10s));
  client other(s.port());
  CHECK(other.get("/health").status == 200);
}

TEST_CASE("Half-sent requests and silent sockets are closed in time") {
  config::server_options o;
  o.header_timeout = std::chrono::milliseconds(200);
  o.idle_timeout = std::chrono::milliseconds(400);
  running_server s(o);
  client half(s.port());
  half.send("POST /v1/completions HTTP/1.1\r\nContent-Le");
  CHECK(half.read_reply().status == 408);
  CHECK(half.closed_within(3s));
  client silent(s.port());
  CHECK(silent.closed_within(3s));
}

TEST_CASE("Connections over the limit are closed at once") {
  config::server_options o;
  o.max_connections = 2;
  running_server s(o);
  client a(s.port());
  client b(s.port());
  CHECK(a.get("/health").status == 200);
  CHECK(b.get("/health").status == 200);
  client c(s.port());
  CHECK(c.closed_within(3s));
  CHECK(a.get("/health").status == 200);
}

TEST_CASE("Connections of one address over its limit are closed at once") {
  config::server_options o;
  o.max_per_address = 2;
  running_server s(o);
  client a(s.port());
  CHECK(a.get("/health").status == 200);
  {
    client b(s.port());
    CHECK(b.upgrade("/v1/stream") == 101); // an upgraded socket counts once
    client c(s.port());
    CHECK(c.closed_within(3s));
  }
  for (int i = 0;; ++i) { // b's place is free once the server has noticed the close
    client d(s.port());
    if (d.try_send("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n") && !d.closed_within(100ms))
      break;
    REQUIRE(i < 50);
  }
}

TEST_CASE("Open sockets are counted over all and per client") {
  net::open_sockets sockets(3, 2);
  auto a = sockets.admit("a");
  auto b = sockets.admit("a");
  CHECK(!sockets.admit("a").has_value());
  auto c = sockets.admit("b");
  REQUIRE(c.has_value());
  CHECK(!sockets.admit("c").has_value());
  {
    const auto moved = std::move(*a);
    CHECK(sockets.count() == 3);
  }
  CHECK(sockets.count() == 2);
  CHECK(sockets.admit("a").has_value());
  net::open_sockets unlimited(2, 0);
  auto d = unlimited.admit("a");
  auto e = unlimited.admit("a");
  CHECK(e.has_value());
}

TEST_CASE("Draining: not ready, no new requests, running streams end, then run returns") {
  script play;
  play.repeat = 100;
  play.step = 2ms;
  running_server s({}, play);
  client c(s.port());
  c.send(post_text("/v1/chat/completions", chat_stream));
  c.read_until("Hello");
  client idle(s.port());
  CHECK(idle.get("/health").status == 200);
  s.server->drain();
  CHECK(idle.closed_within(3s));
  client probe(s.port());
  CHECK(probe.get("/ready").status == 503);
  client late(s.port());
  CHECK(late.post("/v1/chat/completions", chat_body).status == 503);
  CHECK(client(s.port()).upgrade("/v1/stream") == 503);
  CHECK(contains(c.read_until("data: [DONE]\n\n", 10s), "\"finish_reason\":\"stop\""));
  s.join();
}

TEST_CASE("Draining has a deadline: what is left ends with an error event") {
  config::server_options o;
  o.drain_timeout = std::chrono::milliseconds(200);
  running_server s(o, endless());
  client c(s.port());
  c.send(post_text("/v1/chat/completions", chat_stream));
  c.read_until("Hello");
  s.server->drain();
  CHECK(contains(c.read_until("data: [DONE]\n\n", 10s), "shutting_down"));
  s.join();
}

TEST_CASE("Stopping closes everything now") {
  running_server s({}, endless());
  client c(s.port());
  c.send(post_text("/v1/chat/completions", chat_stream));
  c.read_until("Hello");
  s.server->stop();
  s.join();
  CHECK(c.closed_within(3s));
  CHECK(s.engine.wait_cancelled(1));
}

TEST_CASE("An address that cannot be bound is named") {
  running_server s;
  config::options o;
  scripted_engine engine;
  for (const std::string& listen : {"127.0.0.1:" + std::to_string(s.port()),
                                    std::string("nonsense"), std::string("127.0.0.1:99999")}) {
    o.server.listen = {listen};
    try {
      net::server::bind(o, engine);
      FAIL("bound " << listen);
    } catch (const std::runtime_error& error) {
      CHECK(contains(error.what(), listen));
    }
  }
}

TEST_CASE("Many clients at once all get their own text") {
  config::server_options o;
  o.threads = 2;
  running_server s(o);
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int t = 0; t < 16; ++t)
    threads.emplace_back([&] {
      client c(s.port());
      for (int i = 0; i < 10; ++i) {
        const auto r = c.post("/v1/chat/completions", i % 2 == 0 ? chat_stream : chat_body);
        if (r.status == 200 && contains(r.body, i % 2 == 0 ? "[DONE]" : "Hello, world")) ++good;
      }
    });
  for (auto& t : threads)
    t.join();
  CHECK(good == 160);
}
