// The two WebSocket dialects without sockets.
#include "net/protocol/openai/responses_socket.hpp"
#include "net/protocol/stream/stream_dialect.hpp"
#include "tests/catch.hpp"
#include "tests/net/protocol/dialect_fixture.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::testing;

namespace {

using stream_fixture = fixture<stream_dialect>;
using responses_fixture = fixture<responses_socket>;

std::string type_of(const value& frame) {
  return *at(frame, "type").as_string();
}

} // namespace

TEST_CASE("/v1/stream merges what waits of one request into one frame") {
  stream_fixture b;
  b.say(R"({"op":"submit","id":"a","prompt":"x","max_tokens":5})");
  REQUIRE(b.host.started.size() == 1);
  CHECK(b.host.started[0].tenant == "tenant");
  CHECK(b.host.started[0].sampling.max_tokens == 5);
  b.event(1, started());
  CHECK(*b.frame() == json(R"({"id":"a","prompt_tokens":3})"));
  b.event(1, piece("one", 5));
  b.event(1, piece(" two", 6));
  CHECK(*b.frame() == json(R"({"id":"a","tokens":[5,6],"text":"one two"})"));
  b.event(1, piece("!", 7));
  b.event(1, finished());
  const auto last = *b.frame();
  CHECK(at(last, "tokens") == json("[7]"));
  CHECK(at(last, "finish") == value("stop"));
  CHECK(at(last, "usage", "completion_tokens") == value(3));
  CHECK(at(last, "done") == value(true));
  CHECK(!b.frame().has_value());
  CHECK(b.spoken->idle());
}

TEST_CASE("/v1/stream never sends beyond the credit and pauses the engine") {
  stream_fixture b;
  b.say(R"({"op":"submit","id":1,"tokens":[1,2],"credit":2})");
  b.event(1, started());
  for (int i = 0; i < 5; ++i)
    b.event(1, piece("t", 10 + i));
  auto all = b.frames();
  REQUIRE(all.size() == 2);
  CHECK(at(all[1], "tokens") == json("[10,11]"));
  CHECK(b.host.paused.count(1) == 1);
  std::string none;
  CHECK(!b.spoken->next_frame(none));
}

TEST_CASE("/v1/stream goes on when credit is granted") {
  stream_fixture b;
  b.say(R"({"op":"submit","id":1,"prompt":"x","credit":0})");
  CHECK(b.host.paused.count(1) == 1);
  b.event(1, started());
  REQUIRE(b.frame().has_value()); // an event without tokens needs no credit
  b.event(1, piece("a", 1));
  b.event(1, piece("b", 2));
  b.event(1, finished());
  std::string out;
  CHECK(!b.spoken->next_frame(out));
  b.say(R"({"op":"credit","id":1,"n":1})");
  CHECK(b.host.paused.empty());
  CHECK(b.spoken->next_frame(out));
  CHECK(b.host.paused.count(1) == 1); // the credit is used up again
  CHECK(at(json(out), "tokens") == json("[1]"));
  CHECK(!b.spoken->next_frame(out));
  b.say(R"({"op":"credit","id":1,"n":5})");
  const auto rest = b.frames();
  CHECK(b.spoken->waiting_bytes() == 0);
  REQUIRE(rest.size() == 1);
  CHECK(at(rest[0], "done") == value(true));
}

TEST_CASE("/v1/stream: nothing of a cancelled request is sent") {
  stream_fixture b;
  b.say(R"({"op":"submit","id":"a","prompt":"x"})");
  b.event(1, started());
  b.event(1, piece("secret"));
  b.say(R"({"op":"cancel","id":"a"})");
  b.event(1, piece("late"));
  CHECK(b.host.cancelled == std::vector<engine_requests::key>{1});
  const auto all = b.frames();
  REQUIRE(all.size() == 1);
  CHECK(at(all[0], "cancelled") == value(true));
  CHECK(at(all[0], "done") == value(true));
  CHECK(b.spoken->waiting_bytes() == 0); // otherwise the socket would always seem slow
  CHECK(b.spoken->idle());
}

TEST_CASE("/v1/stream names the choice when there are several, and distinguishes their ends") {
  stream_fixture b;
  b.say(R"({"op":"submit","id":"a","prompt":"x","n":2,"return_tokens":false})");
  b.event(1, piece("p", 1, 0));
  b.event(1, piece("q", 2, 1));
  b.event(1, finished(actors::finish_reason::stop, false, 0));
  b.event(1, finished(actors::finish_reason::length, true, 1));
  const auto all = b.frames();
  REQUIRE(all.size() == 4);
  CHECK(all[0] == json(R"({"id":"a","choice":0,"text":"p"})"));
  CHECK(at(all[1], "choice") == value(1));
  CHECK(all[2].find("done") == nullptr);
  CHECK(at(all[3], "finish") == value("length"));
  CHECK(at(all[3], "done") == value(true));
}

TEST_CASE("/v1/stream passes on the prompt in each of its forms") {
  stream_fixture b;
  b.say(R"({"op":"submit","id":1,"prompt":"Once","add_special_tokens":false})");
  b.say(R"({"op":"submit","id":2,"tokens":[5,6]})");
  b.say(R"({"op":"submit","id":3,"messages":[{"role":"user","content":"hi"}]})");
  REQUIRE(b.host.started.size() == 3);
  const auto& text = std::get<actors::text_prompt>(b.host.started[0].prompt);
  CHECK(text.text == "Once");
  CHECK_FALSE(text.add_special);
  CHECK(std::get<actors::token_prompt>(b.host.started[1].prompt) == actors::token_prompt{5, 6});
  const auto& chat = std::get<actors::chat_prompt>(b.host.started[2].prompt);
  CHECK(at(chat.messages, 0, "content") == value("hi"));
  b.say(R"({"op":"submit","id":4,"prompt":"a","tokens":[5]})"); // both prompts at once are refused
  CHECK(b.host.started.size() == 3);
}

TEST_CASE("/v1/stream refuses bad messages and keeps the socket") {
  stream_fixture b(2);
  const auto error = [&](const std::string& text) {
    b.say(text);
    const auto f = b.frame();
    REQUIRE(f.has_value());
    return *at(*f, "error", "message").as_string();
  };
  CHECK(contains(error("{"), "at byte 1"));
  CHECK(contains(error("\xff"), "UTF-8"));
  CHECK(contains(error("[]"), "`op` must be"));
  CHECK(contains(error(R"({"op":"sub"})"), "`op` must be \"submit\""));
  CHECK(error(R"({"op":"submit","prompt":"x"})") == "`id` must be given, got nothing");
  CHECK(contains(error(R"({"op":"submit","id":[],"prompt":"x"})"),
                 "`id` must be an integer or a string"));
  CHECK(contains(error(R"({"op":"submit","id":1})"),
                 "exactly one of `prompt`, `tokens`, `messages`"));
  CHECK(contains(error(R"({"op":"submit","id":1,"prompt":"x","tokens":[1]})"), "got 2"));
  CHECK(contains(error(R"({"op":"submit","id":1,"prompt":"x","credit":-1})"),
                 "`credit` must be >= 0, got -1"));
  CHECK(
      contains(error(R"({"op":"submit","id":1,"prompt":"x","model":"none"})"), "`model` must be"));
  CHECK(contains(error(R"({"op":"submit","id":1,"prompt":"x","top_p":2})"), "`top_p`"));
  CHECK(contains(error(R"({"op":"cancel","id":9})"), "`id` must name a running request, got 9"));
  CHECK(contains(error(R"({"op":"credit","id":9,"n":1})"), "must name a running request"));
  CHECK(b.host.started.empty());
  b.say(R"({"op":"submit","id":1,"prompt":"x"})");
  b.say(R"({"op":"submit","id":1,"prompt":"x"})");
  const auto twice = *b.frame();
  CHECK(contains(*at(twice, "error", "message").as_string(), "`id` must not be in use, got 1"));
  CHECK(twice.find("done") == nullptr); // the running request goes on
  b.say(R"({"op":"submit","id":2,"prompt":"x"})");
  b.say(R"({"op":"submit","id":3,"prompt":"x"})");
  CHECK(at(*b.frame(), "status") == value(429));
  b.say(R"({"op":"ping","nonce":"z"})");
  CHECK(*b.frame() == json(R"({"op":"pong","nonce":"z"})"));
  b.event(1, failed(actors::errc::queue_full, "later"));
  const auto f = *b.frame();
  CHECK(at(f, "status") == value(429));
  CHECK(at(f, "done") == value(true));
}

TEST_CASE("/v1/stream numbers the events of a stored stream, and reads it on behind any of them") {
  stream_fixture b;
  b.say(R"({"op":"submit","id":"a","prompt":"x","store":true,"n":2})");
  REQUIRE(b.host.stored.size() == 1);
  const auto id = b.host.stored[0].id;
  CHECK(id.starts_with("strm_"));
  CHECK(b.host.stored[0].tenant == "tenant");
  b.event(1, started());
  const auto first = b.frames();
  REQUIRE(first.size() == 1);
  CHECK(at(first[0], "seq") == value(std::int64_t{0}));
  CHECK(at(first[0], "stored") == value(id));
  const auto play = [&](engine_requests::key key) {
    b.event(key, piece("A", 100, 0));
    b.event(key, piece("B", 101, 1));
    b.event(key, piece("C", 102, 1));
    b.event(key, finished(actors::finish_reason::stop, false, 0));
    b.event(key, finished(actors::finish_reason::stop, true, 1));
    return b.frames();
  };
  const auto live = play(1);
  REQUIRE(live.size() == 4); // events of one choice are merged
  for (int i = 0; i < 4; ++i)
    CHECK(at(live[static_cast<std::size_t>(i)], "seq") ==
          value(std::int64_t{std::array{1, 3, 4, 5}[static_cast<std::size_t>(i)]}));

  // Resumed after any event, the stream repeats nothing and omits nothing.
  for (std::int64_t after = -1; after <= 5; ++after) {
    b.say(R"({"op":"resume","id":7,"stored":")" + id + "\"" +
          (after < 0 ? "" : ",\"after\":" + std::to_string(after)) + "}");
    const auto key = b.host.started.size();
    b.event(key, {}); // the stored stream was found
    b.event(key, started());
    auto frames = b.frames();
    CHECK(frames.size() == (after < 0 ? 1 : 0));
    for (auto& one : play(key))
      frames.push_back(std::move(one));
    std::string text;
    for (const auto& one : frames)
      if (const auto* part = one.find("text")) text += *part->as_string();
    CHECK(text == std::string(after >= 3 ? "" : after == 2 ? "C" : after == 1 ? "BC" : "ABC"));
    REQUIRE_FALSE(frames.empty());
    CHECK(at(frames.back(), "seq") == value(std::int64_t{5}));
    CHECK(at(frames.back(), "done") == value(true));
    CHECK(at(frames.back(), "usage", "completion_tokens") == value(std::int64_t{3}));
  }
  CHECK(b.spoken->idle());
}

TEST_CASE("/v1/stream ends a stored stream that is cancelled, and leaves it") {
  stream_fixture b;
  b.say(R"({"op":"submit","id":"a","prompt":"x","store":true,"credit":0})");
  b.event(1, started());
  const auto begun = b.frames(); // frames before the tokens need no credit
  REQUIRE(begun.size() == 1);
  CHECK(at(begun[0], "stored") == value(b.host.stored[0].id));
  CHECK_FALSE(b.host.paused.contains(1));
  b.event(1, piece("A"));
  CHECK(b.host.paused.contains(1)); // while paused, the request would not end by itself
  b.host.ends_by_event = true;
  b.say(R"({"op":"cancel","id":"a"})");
  CHECK(b.host.ended == std::vector<engine_requests::key>{1});
  CHECK(b.host.cancelled == std::vector<engine_requests::key>{1});
  CHECK(b.frames().size() == 1);
  CHECK(b.spoken->idle());
}

TEST_CASE("/v1/stream refuses to read on what is not there") {
  stream_fixture b;
  b.say(R"({"op":"submit","id":"a","prompt":"x","store":true})");
  const auto id = b.host.stored[0].id;
  const auto refused = [&](const std::string& message) {
    b.say(message);
    const auto frames = b.frames();
    REQUIRE(frames.size() == 1);
    return frames[0];
  };
  CHECK(at(refused(R"({"op":"resume","id":1,"stored":"strm_0"})"), "status") ==
        value(std::int64_t{404}));
  CHECK(at(refused(R"({"op":"resume","id":1,"stored":"resp_0"})"), "done") == value(true));
  CHECK(at(refused(R"({"op":"resume","id":1,"stored":"strm_)" + std::string(200, 'a') + "\"}"),
           "done") == value(true));
  CHECK(at(refused(R"({"op":"resume","id":1})"), "error", "param") == value("stored"));
  CHECK(at(refused(R"({"op":"resume","id":"a","stored":")" + id + "\"}"), "error", "param") ==
        value("id"));
  CHECK(at(refused(R"({"op":"resume","id":1,"stored":")" + id + R"(","after":-1})"), "error",
           "param") == value("after"));
  // While the response is looked up, the id is in use, and the lookup can be cancelled.
  b.host.finds_at_once = false;
  const auto resume = R"({"op":"resume","id":1,"stored":")" + id + R"(","credit":1})";
  b.say(resume);
  CHECK(b.frames().empty());
  CHECK(at(refused(resume), "error", "param") == value("id"));
  b.say(R"({"op":"credit","id":1,"n":1})");
  b.say(R"({"op":"cancel","id":1})");
  CHECK(b.frames().empty()); // the response is not found yet
  b.host.ends_by_event = true;
  std::exchange(b.host.looked, nullptr)();
  const auto cancelled = b.frames();
  REQUIRE(cancelled.size() == 1);
  CHECK(at(cancelled[0], "cancelled") == value(true));
  CHECK(b.host.ended == std::vector<engine_requests::key>{2});
  CHECK(b.host.cancelled == std::vector<engine_requests::key>{2});
  b.host.finds_at_once = true;
  b.host.stored[0].tenant = "another";
  CHECK(at(refused(R"({"op":"resume","id":1,"stored":")" + id + "\"}"), "status") ==
        value(std::int64_t{404}));
  CHECK(b.host.started.size() == 2);
}

TEST_CASE("Responses socket: a turn's events, one per frame") {
  responses_fixture b;
  const auto all = b.turn(R"({"type":"response.create","input":"hi"})");
  REQUIRE(all.size() == 9);
  CHECK(type_of(all[0]) == "response.created");
  CHECK(type_of(all[4]) == "response.output_text.delta");
  CHECK(type_of(all[8]) == "response.completed");
  CHECK(all[0].find("stream_id") == nullptr);
  CHECK(b.spoken->idle());
}

TEST_CASE("Responses socket: turns of a lane run in order, lanes beside each other") {
  responses_fixture b;
  b.say(R"({"type":"response.create","input":"1","stream_id":"a"})");
  b.say(R"({"type":"response.create","input":"2","stream_id":"a"})");
  b.say(R"({"type":"response.create","input":"3","stream_id":"b"})");
  REQUIRE(b.host.started.size() == 2); // the turns 1 and 3
  b.event(1, started());
  b.event(2, started());
  for (const auto& f : b.frames())
    CHECK((at(f, "stream_id") == value("a") || at(f, "stream_id") == value("b")));
  b.event(1, finished());
  REQUIRE(b.host.started.size() == 3);
  const auto& chat = std::get<actors::chat_prompt>(b.host.started[2].prompt);
  CHECK(at(chat.messages, 0, "content") == value("2"));
}

TEST_CASE("Responses socket: the newest response of a lane is continued, without being stored") {
  responses_fixture b;
  const auto first = b.turn(R"({"type":"response.create","input":"hi","store":false})");
  const auto id = *at(first.back(), "response", "id").as_string();
  b.turn(R"({"type":"response.create","input":"more","store":false,"previous_response_id":")" + id +
         "\"}");
  const auto& chat = std::get<actors::chat_prompt>(b.host.started[1].prompt);
  CHECK(chat.messages ==
        json(R"([{"role":"user","content":"hi"},{"role":"assistant","content":"Hi"},
                                  {"role":"user","content":"more"}])"));
  CHECK(b.responses.find(id, "tenant", 0) == nullptr);
  b.say(R"({"type":"response.create","input":"x","previous_response_id":")" + id + "\"}");
  const auto gone = *b.frame(); // only the newest response is kept
  CHECK(at(gone, "error", "code") == value("previous_response_not_found"));
  CHECK(at(gone, "status") == value(400));
  b.spoken.reset();
  CHECK(b.responses.held_bytes() == 0);
}

TEST_CASE("Responses socket: a failed turn evicts what it continued") {
  responses_fixture b;
  const auto first = b.turn(R"({"type":"response.create","input":"hi","store":false})");
  const auto id = *at(first.back(), "response", "id").as_string();
  b.say(R"({"type":"response.create","input":"x","store":false,"previous_response_id":")" + id +
        "\"}");
  b.event(2, started());
  b.event(2, failed(actors::errc::executor_failed, "boom"));
  const auto all = b.frames();
  CHECK(type_of(all.back()) == "response.failed");
  CHECK(b.responses.find(id, "tenant", 77) == nullptr);
}

TEST_CASE("Responses socket: cancelling ends the turn with one event and starts the next") {
  responses_fixture b;
  b.say(R"({"type":"response.create","input":"1"})");
  b.say(R"({"type":"response.create","input":"2"})");
  b.event(1, started());
  b.event(1, piece("a"));
  b.frames();
  b.say(R"({"type":"response.cancel"})");
  b.event(1, piece("late"));
  const auto all = b.frames();
  CHECK(b.host.cancelled == std::vector<engine_requests::key>{1});
  CHECK(type_of(all.back()) == "response.incomplete");
  CHECK(at(all.back(), "response", "status") == value("cancelled"));
  for (const auto& f : all)
    CHECK(type_of(f) != "response.output_text.delta");
  CHECK(b.host.started.size() == 2);
  b.say(R"({"type":"response.cancel","stream_id":"nowhere"})");
  CHECK(at(*b.frame(), "error", "code") == value("nothing_running"));
}

TEST_CASE("Responses socket: a warm-up makes no tokens and lends its instructions") {
  responses_fixture b;
  b.say(
      R"({"type":"response.create","generate":false,"instructions":"be kind","tools":[{"type":"function","name":"f"}]})");
  const auto all = b.frames();
  REQUIRE(all.size() == 3);
  CHECK(b.host.started.empty());
  const auto id = *at(all[2], "response", "id").as_string();
  b.say(R"({"type":"response.create","input":"go","previous_response_id":")" + id + "\"}");
  REQUIRE(b.host.started.size() == 1);
  const auto& chat = std::get<actors::chat_prompt>(b.host.started[0].prompt);
  CHECK(at(chat.messages, 0, "content") == value("be kind"));
  CHECK(at(chat.tools, 0, "function", "name") == value("f"));
}

TEST_CASE("Responses socket: lanes and waiting turns are bounded") {
  responses_fixture b(2);
  b.say(R"({"type":"response.create","input":"1","stream_id":"a"})");
  b.say(R"({"type":"response.create","input":"1","stream_id":"b"})");
  b.say(R"({"type":"response.create","input":"1","stream_id":"c"})");
  auto f = *b.frame();
  CHECK(at(f, "error", "code") == value("websocket_stream_limit_reached"));
  CHECK(at(f, "stream_id") == value("c"));
  for (int i = 0; i < 17; ++i)
    b.say(R"({"type":"response.create","input":"1","stream_id":"a"})");
  f = *b.frame();
  CHECK(at(f, "status") == value(429));
  b.event(2, failed(actors::errc::queue_full, "later")); // lane b is idle now and makes room
  CHECK(at(*b.frame(), "status") == value(429));
  b.say(R"({"type":"response.create","input":"1","stream_id":"c"})");
  CHECK(b.host.started.size() == 3);
}

TEST_CASE("Responses socket: turns that ran leave room for others to wait") {
  responses_fixture b;
  b.options.server.max_frame_bytes = 200; // the limit for all turns that wait
  const std::string turn = R"({"type":"response.create","input":"1"})";
  b.say(turn);
  for (std::size_t n = 1; n <= 10; ++n) {
    b.say(turn);
    b.event(n, finished());
  }
  CHECK(b.host.started.size() == 11); // each turn was begun when the one before had ended
}

TEST_CASE("Responses socket: what a lane remembered goes with the lane") {
  responses_fixture b(1);
  const auto first =
      b.turn(R"({"type":"response.create","input":"hi","store":false,"stream_id":"a"})");
  const auto id = *at(first.back(), "response", "id").as_string();
  b.say(R"({"type":"response.create","input":"hi","stream_id":"b"})"); // lane a makes room
  CHECK(b.responses.find(id, "tenant", 77) == nullptr);
  CHECK(b.responses.held_bytes() == 0);
}

TEST_CASE("On an open WebSocket nothing starts once the key was taken away") {
  config::options closed;
  closed.server.api_keys = {"another"};
  stream_fixture stream;
  stream.say(R"({"op":"submit","id":1,"prompt":"x"})");
  stream.current.replace(closed);
  stream.say(R"({"op":"submit","id":2,"prompt":"x"})");
  CHECK(at(*stream.frame(), "status") == value(401));
  CHECK(stream.host.started.size() == 1);
  responses_fixture responses;
  responses.current.replace(closed);
  responses.say(R"({"type":"response.create","input":"x"})");
  CHECK(at(*responses.frame(), "status") == value(401));
  CHECK(responses.host.started.empty());
}

TEST_CASE("Responses socket: bad messages are answered with error frames") {
  responses_fixture b;
  const std::pair<const char*, const char*> cases[] = {
      {"{", "at byte"},
      {"5", "`type` must be \"response.create\" or \"response.cancel\", got nothing"},
      {R"({"type":"response.steer"})", "got \"response.steer\""},
      {R"({"type":"response.create"})", "`input` must be given"},
      {R"({"type":"response.create","input":"x","stream_id":5})",
       "`stream_id` must be a string of 1 to 128 bytes, got 5"},
      {R"({"type":"response.create","input":"x","model":"nope"})",
       "`model` must be a served model"},
  };
  for (const auto& [text, expected] : cases) {
    b.say(text);
    const auto f = *b.frame();
    CHECK(type_of(f) == "error");
    INFO(*at(f, "error", "message").as_string());
    CHECK(contains(*at(f, "error", "message").as_string(), expected));
  }
  CHECK(b.spoken->idle());
}

TEST_CASE("While unread output fills its budget, nothing new starts; what runs can be cancelled") {
  fixture<stream_dialect> b;
  b.say(R"({"op":"submit","id":1,"prompt":"x"})");
  b.host.full = true;
  b.say(R"({"op":"submit","id":2,"prompt":"x"})");
  CHECK(b.host.started.size() == 1);
  const auto refused = b.frame();
  REQUIRE(refused.has_value());
  CHECK(at(*refused, "error", "code") == value("busy"));
  CHECK(*refused->find("done") == value(true));
  b.say(R"({"op":"cancel","id":1})");
  CHECK(b.host.cancelled.size() == 1);

  fixture<responses_socket> r;
  r.host.full = true;
  r.say(R"({"type":"response.create","input":"x"})");
  CHECK(r.host.started.empty());
  CHECK(at(r.frame().value(), "error", "code") == value("busy"));
}
