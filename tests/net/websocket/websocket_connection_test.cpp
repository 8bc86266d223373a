// The state machine of a WebSocket, without a socket: events go in, actions come out.
#include "net/websocket/websocket_connection.hpp"

#include <deque>

#include "tests/catch.hpp"
#include "tests/net/support/codec_support.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::testing;

namespace {

using phase = websocket_connection::phase;

constexpr websocket_connection::time start{1h};

/// Records the messages that it receives; each event becomes a frame.
struct fake_dialect final : dialect {
  std::vector<std::string> heard;
  std::deque<std::string> frames;
  bool busy = false;

  void on_message(std::string_view text) override { heard.emplace_back(text); }
  void on_event(engine_requests::key, actors::event&& ev) override { frames.push_back(ev.text); }
  void on_error(const api_error& error) override { frames.push_back("error: " + error.message); }
  bool next_frame(std::string& out) override {
    if (frames.empty()) return false;
    out = std::move(frames.front());
    frames.pop_front();
    return true;
  }
  std::size_t waiting_bytes() const override {
    std::size_t bytes = 0;
    for (const auto& frame : frames)
      bytes += frame.size();
    return bytes;
  }
  bool idle() const override { return !busy && frames.empty(); }
};

struct fixture {
  fake_dialect spoken;
  websocket_connection connection{{{800, 30s}, {10s, 1000}}, spoken};

  fixture() { connection.on_open(); }
  std::string written(websocket_connection::time now = start) {
    const auto* frame = connection.begin_write(now);
    return frame == nullptr ? "" : *frame;
  }
  void event(const std::string& text) {
    std::vector<std::pair<engine_requests::key, actors::event>> events;
    events.emplace_back(1, piece(text));
    connection.on_engine_events(std::move(events));
  }
};

} // namespace

TEST_CASE("WebSocket connection: messages go to the dialect, frames come from it one by one") {
  fixture b;
  b.connection.on_message("hello");
  CHECK(b.spoken.heard == std::vector<std::string>{"hello"});
  b.event("a");
  b.event("b");
  CHECK(b.written() == "a");
  CHECK(b.written().empty());
  b.connection.on_written();
  CHECK(b.written() == "b");
}

TEST_CASE("WebSocket connection: nothing is written or read before the handshake is over") {
  fake_dialect spoken;
  websocket_connection connection({{800, 30s}, {10s, 1000}}, spoken);
  spoken.frames.push_back("early");
  CHECK(!connection.wants_read());
  CHECK(connection.begin_write(start) == nullptr);
  connection.on_open();
  CHECK(connection.wants_read());
  CHECK(connection.begin_write(start) != nullptr);
}

TEST_CASE("WebSocket connection: a fault says why, then closes with its code") {
  fixture b;
  b.connection.fail({errc::binary_frame, std::string(200, 'x'), ""});
  CHECK(b.connection.take_actions().cancel_requests);
  CHECK(!b.connection.wants_read());
  b.connection.on_message("too late");
  CHECK(b.spoken.heard.empty());
  CHECK(b.written().starts_with("error: "));
  CHECK(!b.connection.take_close(start).has_value()); // the frame is still being written
  b.connection.on_written();
  CHECK(b.written().empty());
  const auto close = b.connection.take_close(start);
  REQUIRE(close.has_value());
  CHECK(close->code == 1003);
  CHECK(close->reason.size() == 120);
  CHECK(b.connection.next_deadline() == start + 5s);
  b.connection.on_close_done(start + 1s);
  CHECK(b.connection.take_actions().half_close);
  CHECK(b.connection.next_deadline() == start + 2s);
  b.connection.on_deadline(start + 2s);
  CHECK(b.connection.take_actions().close);
}

TEST_CASE("WebSocket connection: the client closes, and what it ran ends") {
  fixture b;
  b.event("a");
  b.connection.on_peer_closing(start);
  CHECK(b.connection.take_actions().cancel_requests);
  CHECK(b.written().empty());
  CHECK(!b.connection.take_close(start).has_value());
  b.connection.on_read_failed(start);
  CHECK(b.connection.now_in() == phase::lingering);
  CHECK(b.connection.take_actions().half_close);
}

TEST_CASE("WebSocket connection: an end of reading does not disturb our own closing handshake") {
  fixture b;
  b.connection.on_drain();
  CHECK(b.written().empty());
  const auto close = b.connection.take_close(start);
  REQUIRE(close.has_value());
  CHECK(close->code == 1001);
  b.connection.on_peer_closing(start); // both sides close at once
  b.connection.on_read_failed(start);
  CHECK(b.connection.now_in() == phase::close_sent);
  CHECK(!b.connection.take_actions().half_close); // otherwise our close frame might be lost
  b.connection.on_close_done(start);
  CHECK(b.connection.take_actions().half_close);
}

TEST_CASE("WebSocket connection: a drain waits for what the dialect still runs") {
  fixture b;
  b.spoken.busy = true;
  b.connection.on_drain();
  CHECK(b.written().empty());
  CHECK(b.connection.now_in() == phase::open);
  b.spoken.busy = false;
  CHECK(b.written().empty());
  CHECK(b.connection.now_in() == phase::closing);
}

TEST_CASE("WebSocket connection: a slow reader is paused, not read from, resumed, and cut off") {
  fixture b;
  b.event(std::string(500, 'x'));
  b.connection.check_output(true, start);
  CHECK(b.connection.take_actions().pause_requests);
  CHECK(!b.connection.wants_read());
  CHECK(b.written().size() == 500);
  b.connection.on_written();
  b.connection.check_output(true, start);
  CHECK(b.connection.take_actions().resume_requests);
  CHECK(b.connection.wants_read());
  b.event("late");
  CHECK(b.written() == "late");
  CHECK(b.connection.next_deadline() == start + 30s);
  b.connection.on_deadline(start + 30s);
  CHECK(b.connection.take_actions().cancel_requests);
  CHECK(b.connection.now_in() == phase::closing);
  CHECK(b.connection.next_deadline() == start + 31s);
  b.connection.on_deadline(start + 31s);
  CHECK(b.connection.take_actions().close);
}

TEST_CASE("WebSocket connection: a message comes at the least rate, or the socket closes") {
  fixture b;
  CHECK(b.connection.next_deadline() == websocket_connection::time::max());
  b.connection.on_message_part(1, start);
  b.connection.on_message_part(2000, start + 1s); // two seconds at 1000 bytes per second
  CHECK(b.connection.next_deadline() == start + 12s);
  b.connection.on_message_part(5000, start + 9s);
  b.connection.on_deadline(start + 12s);
  CHECK(b.connection.now_in() == phase::open);
  b.connection.on_message("whole");
  CHECK(b.connection.next_deadline() == websocket_connection::time::max());
  b.connection.on_deadline(start + 60s);
  CHECK(b.connection.now_in() == phase::open);
  b.connection.on_message_part(1000, start + 60s);
  b.connection.on_deadline(start + 70s);
  CHECK(b.connection.now_in() == phase::open);
  b.connection.on_deadline(start + 71s);
  CHECK(contains(b.written(), "`server.body_rate` (1000 bytes per second)"));
  b.connection.on_written();
  CHECK(b.connection.take_close(start + 71s)->code == 1008);
}

TEST_CASE("WebSocket connection: a message that has begun is read on while output waits") {
  fixture b;
  b.connection.on_message_part(10, start);
  b.event(std::string(500, 'x')); // more than half of what may wait
  b.connection.check_output(true, start);
  CHECK(b.connection.take_actions().pause_requests);
  CHECK(b.connection.wants_read());
  b.connection.on_message("whole");
  CHECK_FALSE(b.connection.wants_read());
}

TEST_CASE("WebSocket connection: a message that is given up for others ends soon") {
  fixture b;
  b.connection.on_message_part(10, start);
  b.connection.give_up_message(start + 1s);
  CHECK(contains(b.written(), "too many request bodies and messages"));
  b.connection.on_written();
  CHECK(b.connection.take_close(start + 1s)->code == 1013);
  b.connection.on_deadline(start + 1250ms);
  CHECK(b.connection.now_in() == phase::closed);
}

TEST_CASE("WebSocket connection: output beyond the limit is cut off only while requests run") {
  fixture b;
  b.event(std::string(900, 'x'));
  b.connection.check_output(true, start);
  b.connection.check_output(false, start + 2s);
  CHECK(b.connection.now_in() == phase::open);
  b.connection.check_output(true, start + 2s);
  CHECK(b.connection.now_in() == phase::closing);
}
