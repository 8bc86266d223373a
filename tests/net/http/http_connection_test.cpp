// The state machine of an HTTP connection, without a socket: events go in, actions come out.
#include "net/http/http_connection.hpp"
#include "tests/catch.hpp"
#include "tests/net/support/codec_support.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::testing;

namespace {

using phase = http_connection::phase;

constexpr http_connection::time start{1h};
constexpr http_connection::limits limits{{800, 30s}, {10s, 100}, 60s, 0s};

/// Writes "[text]" for each event and "." at the end.
class echo_encoder final : public reply_encoder {
public:
  explicit echo_encoder(std::string_view filler = stream_format().filler) : filler_(filler) {}
  stream_format format() const override { return {"text/plain", filler_}; }
  void on_event(std::size_t request, actors::event&& ev, std::string& out) override {
    out += "[" + std::to_string(request) + ev.text + "]";
  }
  void on_end(std::string& out) override { out += "."; }
  void on_error(const api_error& error, std::string& out) override { out += "!" + error.message; }

private:
  std::string_view filler_;
};

struct fixture {
  explicit fixture(http_connection::limits with = limits) : connection(with, start) {}

  http_connection connection;

  /// What would be written now; "" for nothing.
  std::string written() {
    const auto* bytes = connection.begin_write(start);
    return bytes == nullptr ? "" : *bytes;
  }
  /// Like written(), but the write also ends at once.
  std::string write_all() {
    auto bytes = written();
    if (!bytes.empty()) connection.on_written(start);
    return bytes;
  }
  void receive(reply_framing framing = {"id"}) {
    connection.on_head_begun(start);
    connection.on_head(std::move(framing), start);
    connection.on_whole_request();
  }
  void generate(bool stream, std::size_t n_requests = 1,
                std::string_view filler = stream_format().filler) {
    call generation;
    generation.stream = stream;
    generation.requests.resize(n_requests);
    generation.encoder = std::make_unique<echo_encoder>(filler);
    connection.on_call(generation, 7, start);
  }
  void event(actors::event ev, std::uint64_t key = 7) {
    std::vector<std::pair<std::uint64_t, actors::event>> events;
    events.emplace_back(key, std::move(ev));
    connection.on_engine_events(std::move(events), start);
  }
};

} // namespace

TEST_CASE("HTTP connection: a reply is written and the next request accepted") {
  fixture b;
  CHECK(b.connection.accepts_input());
  b.receive();
  CHECK(b.connection.now_in() == phase::answering);
  CHECK(!b.connection.accepts_input());
  b.connection.on_reply({200, "{}"}, start);
  CHECK(b.connection.now_in() == phase::idle);
  CHECK(b.written().ends_with("\r\n\r\n{}"));
  CHECK(b.written().empty()); // one write at a time
  CHECK(b.connection.accepts_input());
  b.connection.on_written(start);
  CHECK(b.connection.output_empty());
  CHECK(!b.connection.take_actions().half_close);
}

TEST_CASE("HTTP connection: without keep-alive the last bytes are written, then it half-closes") {
  fixture b;
  b.receive({"id", false});
  b.connection.on_reply({200, "{}"}, start);
  CHECK(b.connection.now_in() == phase::finishing);
  CHECK(b.connection.drops_input());
  CHECK(!b.connection.take_actions().half_close);
  CHECK(contains(b.write_all(), "Connection: close"));
  CHECK(b.connection.now_in() == phase::lingering);
  CHECK(b.connection.take_actions().half_close);
  CHECK(b.connection.next_deadline() == start + 1s);
  b.connection.on_deadline(start + 999ms);
  CHECK(b.connection.now_in() == phase::lingering);
  b.connection.on_deadline(start + 1s);
  CHECK(b.connection.take_actions().close);
  CHECK(b.connection.now_in() == phase::closed);
}

TEST_CASE("HTTP connection: a stream goes out in chunks, a whole reply at its end") {
  fixture b;
  b.receive();
  b.generate(true);
  b.event(piece("a"));
  CHECK(b.write_all().ends_with("\r\n\r\n4\r\n[0a]\r\n"));
  b.event(finished());
  CHECK(b.write_all() == "4\r\n[0].\r\n0\r\n\r\n");
  CHECK(b.connection.now_in() == phase::idle);
  b.receive();
  b.generate(false, 2);
  b.event(piece("a"));
  b.event(finished(), 8);
  CHECK(b.written().empty());
  b.event(finished());
  CHECK(b.write_all().ends_with("\r\n\r\n[0a][1][0]."));
}

TEST_CASE("HTTP connection: HTTP/1.0 streams end with the close") {
  fixture b;
  b.receive({"id", true, true});
  b.generate(true);
  b.event(piece("a"));
  CHECK(b.write_all().ends_with("\r\n\r\n[0a]"));
  b.event(finished());
  CHECK(b.write_all() == "[0].");
  CHECK(b.connection.now_in() == phase::lingering);
}

TEST_CASE(
    "HTTP connection: an error has its status before the stream begins, then it is an event") {
  fixture b;
  b.receive();
  b.generate(true);
  b.event(failed(actors::errc::queue_full, "full"));
  CHECK(b.write_all().starts_with("HTTP/1.1 429 "));
  CHECK(b.connection.take_actions().cancel_requests);
  b.receive();
  b.generate(true);
  b.event(started());
  b.event(failed(actors::errc::executor_failed, "boom"));
  CHECK(b.write_all().ends_with("5\r\n!boom\r\n0\r\n\r\n"));
  CHECK(b.connection.now_in() == phase::idle);
}

TEST_CASE("HTTP connection: what came with a failure is sent before it") {
  fixture b;
  b.receive();
  b.generate(true);
  std::vector<std::pair<std::uint64_t, actors::event>> together;
  together.emplace_back(7, piece("text"));
  together.emplace_back(7, failed(actors::errc::executor_failed, "boom"));
  b.connection.on_engine_events(std::move(together), start);
  CHECK(b.write_all().ends_with("7\r\n[0text]\r\n5\r\n!boom\r\n0\r\n\r\n"));
}

TEST_CASE("HTTP connection: leaving ends what runs; complete replies still go out") {
  fixture running;
  running.receive();
  running.generate(true);
  running.connection.on_peer_closed(start);
  CHECK(running.connection.take_actions().close);
  fixture idle;
  idle.connection.on_peer_closed(start);
  CHECK(idle.connection.take_actions().close);
  fixture replied;
  replied.receive();
  replied.connection.on_reply({200, "{}"}, start);
  replied.connection.on_peer_closed(start);
  CHECK(!replied.connection.take_actions().close);
  CHECK(replied.write_all().ends_with("{}"));
  CHECK(replied.connection.take_actions().close); // without lingering, since the peer has closed
}

TEST_CASE("HTTP connection: a reader that is slow is paused, resumed, and cut off in time") {
  fixture b;
  b.receive();
  b.generate(true);
  b.event(piece(std::string(1000, 'x')));
  CHECK(b.connection.take_actions().pause_requests);
  CHECK(b.written().size() > 1000);
  b.connection.on_written(start);
  CHECK(b.connection.take_actions().resume_requests);
  b.event(piece(std::string(1000, 'x')));
  CHECK(!b.written().empty());
  CHECK(b.connection.next_deadline() == start + 30s);
  b.connection.on_deadline(start + 30s);
  CHECK(b.connection.take_actions().cancel_requests);
  CHECK(b.connection.now_in() == phase::finishing);
  CHECK(b.connection.next_deadline() == start + 31s);
  b.connection.on_written(start + 30s);
  CHECK(contains(b.written(), "server.slow_reader_timeout"));
}

TEST_CASE("HTTP connection: producers that do not heed the gate are cut off") {
  fixture b;
  b.receive();
  b.generate(true);
  b.event(piece(std::string(1000, 'x')));
  std::vector<std::pair<std::uint64_t, actors::event>> more;
  more.emplace_back(7, piece("y"));
  b.connection.on_engine_events(std::move(more), start + 2s);
  CHECK(b.connection.take_actions().cancel_requests);
  CHECK(b.connection.now_in() == phase::finishing);
}

TEST_CASE("HTTP connection: requests wait while the reader does not take their replies") {
  fixture b;
  b.receive();
  b.connection.on_reply({200, std::string(1000, 'x')}, start);
  CHECK(b.connection.now_in() == phase::idle);
  CHECK(!b.connection.accepts_input());
  b.write_all();
  CHECK(b.connection.accepts_input());
}

TEST_CASE("HTTP connection: requests and silence have their deadlines") {
  fixture half;
  half.connection.on_head_begun(start + 5s);
  CHECK(half.connection.next_deadline() == start + 15s);
  half.connection.on_deadline(start + 15s);
  CHECK(half.connection.now_in() == phase::finishing);
  const auto reply = half.write_all();
  CHECK(reply.starts_with("HTTP/1.1 408 "));
  CHECK(contains(reply, "server.header_timeout"));
  fixture slow;
  slow.connection.on_head_begun(start);
  slow.connection.on_head({"id"}, start + 5s);
  CHECK(slow.connection.next_deadline() == start + 15s);
  slow.connection.on_body_bytes(250); // 2.5 s at the least rate
  CHECK(slow.connection.next_deadline() == start + 17500ms);
  slow.connection.on_deadline(start + 17s);
  CHECK(slow.connection.receiving());
  slow.connection.on_deadline(start + 18s);
  CHECK(contains(slow.written(), "server.body_rate"));
  fixture silent;
  CHECK(silent.connection.next_deadline() == start + 60s);
  silent.connection.on_deadline(start + 60s);
  CHECK(silent.connection.take_actions().close);
  fixture busy;
  busy.receive();
  CHECK(busy.connection.next_deadline() == http_connection::time::max());
}

TEST_CASE("HTTP connection: a drain ends an idle connection, a busy one after its reply") {
  fixture idle;
  idle.connection.on_drain(start);
  CHECK(idle.connection.now_in() == phase::lingering);
  fixture busy;
  busy.receive();
  busy.connection.on_drain(start);
  CHECK(busy.connection.now_in() == phase::answering);
  busy.connection.on_reply({200, "{}"}, start);
  CHECK(busy.connection.now_in() == phase::finishing);
}

TEST_CASE("HTTP connection: a file goes out piece by piece, each when the last is written") {
  fixture b;
  b.receive();
  b.connection.on_file({200, "", "text/plain", {}}, 5, start);
  CHECK(!b.connection.wants_file_piece());
  CHECK(contains(b.write_all(), "Content-Length: 5\r\n"));
  REQUIRE(b.connection.wants_file_piece());
  b.connection.on_file_piece("abc", start);
  CHECK(!b.connection.wants_file_piece());
  CHECK(b.write_all() == "abc");
  CHECK(b.connection.file_bytes_left() == 2);
  b.connection.on_file_piece("de", start);
  CHECK(b.connection.now_in() == phase::idle);
  CHECK(b.write_all() == "de");
  b.receive({"id", true, false, true}); // HEAD
  b.connection.on_file({200, "", "text/plain", {}}, 5, start);
  CHECK(b.connection.now_in() == phase::idle);
}

TEST_CASE("HTTP connection: a late answer for a connection that was cut off is dropped") {
  fixture b;
  b.receive();
  b.connection.close();
  b.connection.on_reply({200, "{}"}, start);
  CHECK(b.written().empty());
  CHECK(b.connection.next_deadline() == http_connection::time::max());
}

TEST_CASE("HTTP connection: what a whole reply gathers counts as output") {
  fixture b;
  b.receive();
  b.generate(false);
  actors::event ev;
  ev.text = std::string(1000, 'x');
  b.event(std::move(ev));
  CHECK(b.connection.output_bytes() >= 1000);
  b.connection.on_peer_closed(start);
  CHECK(b.connection.output_bytes() == 0);
}

TEST_CASE("HTTP connection: all that a whole reply gathers counts as output") {
  fixture b;
  b.receive();
  b.generate(false);
  std::size_t before = b.connection.output_bytes();
  const auto grows_by = [&](std::size_t least, actors::event ev) {
    b.event(std::move(ev));
    const auto now = b.connection.output_bytes();
    CHECK(now >= before + least);
    before = now;
  };
  actors::event ev;
  ev.text = std::string(1000, 'a');
  grows_by(1000, ev);
  ev = {};
  ev.parts.push_back({actors::output_part_kind::reasoning, std::string(2000, 'b')});
  grows_by(2000, ev);
  ev = {};
  ev.prompt_ids.resize(1000);
  grows_by(4000, ev);
  ev = {};
  ev.tokens.resize(10);
  for (auto& token : ev.tokens)
    token.top.resize(20);
  grows_by(200 * sizeof(actors::token_logprob), ev);
  ev.prompt_scores = std::move(ev.tokens);
  ev.tokens.clear();
  grows_by(200 * sizeof(actors::token_logprob), ev);
}

TEST_CASE("HTTP connection: a silent stream gets a comment, before its first token and later") {
  auto kept_alive = limits;
  kept_alive.keep_alive = 15s;
  fixture b(kept_alive);
  b.receive();
  b.generate(true);
  CHECK(b.connection.next_deadline() == start + 15s);
  b.connection.on_deadline(start + 14s);
  CHECK(b.written().empty());
  b.connection.on_deadline(start + 15s);
  const auto first = b.written();
  CHECK(first.starts_with("HTTP/1.1 200 "));
  CHECK(first.ends_with("\r\n\r\ne\r\n: keep-alive\n\n\r\n"));
  b.connection.on_written(start + 16s);
  CHECK(b.connection.next_deadline() == start + 31s);
  b.connection.on_deadline(start + 31s);
  CHECK(b.written() == "e\r\n: keep-alive\n\n\r\n");
  b.connection.on_written(start + 31s);
  b.event(failed(actors::errc::queue_full, "full"));
  CHECK(b.write_all() == "5\r\n!full\r\n0\r\n\r\n");
  CHECK(b.connection.next_deadline() == start + 60s); // idle again
}

TEST_CASE("HTTP connection: a stream whose format has nothing to skip has no deadline of silence") {
  auto kept_alive = limits;
  kept_alive.keep_alive = 15s;
  fixture b(kept_alive);
  b.receive();
  b.generate(true, 1, "");
  // A deadline that passes without a write would be due again at once, and for ever.
  CHECK(b.connection.next_deadline() == http_connection::time::max());
  b.connection.on_deadline(start + 15s);
  CHECK(b.written().empty());
  b.event(piece("a"));
  CHECK(b.connection.next_deadline() == http_connection::time::max());
  CHECK(b.write_all().ends_with("\r\n\r\n4\r\n[0a]\r\n"));
  CHECK(b.connection.next_deadline() == http_connection::time::max());
  b.connection.on_deadline(start + 60min);
  CHECK(b.written().empty());
  b.event(finished());
  CHECK(b.write_all() == "4\r\n[0].\r\n0\r\n\r\n");
  CHECK(b.connection.next_deadline() == start + 60s); // idle again
}

TEST_CASE("HTTP connection: a stream to a client that does not read gathers no comments") {
  auto kept_alive = limits;
  kept_alive.keep_alive = 1s;
  fixture b(kept_alive);
  b.receive();
  b.generate(true);
  b.event(piece("a"));
  const auto before = b.connection.output_bytes();
  REQUIRE(!b.written().empty());
  for (auto now = start; now < start + 29s; now += 500ms)
    b.connection.on_deadline(now);
  CHECK(b.connection.output_bytes() == before);
  CHECK(b.connection.next_deadline() == start + 30s); // the deadline of the slow reader
}

TEST_CASE("HTTP connection: whole replies, HTTP/1.0 and streams without keep-alive") {
  auto kept_alive = limits;
  kept_alive.keep_alive = 1s;
  fixture whole(kept_alive);
  whole.receive();
  whole.generate(false);
  CHECK(whole.connection.next_deadline() == http_connection::time::max());
  fixture old(kept_alive);
  old.receive({"id", true, true});
  old.generate(true);
  old.connection.on_deadline(start + 1s);
  CHECK(old.write_all().ends_with("\r\n\r\n: keep-alive\n\n"));
  fixture none;
  none.receive();
  none.generate(true);
  CHECK(none.connection.next_deadline() == http_connection::time::max());
}
