// Parsing frames and replies from byte streams, without sockets.
#include <boost/asio/buffer.hpp>
#include <boost/beast/core/flat_buffer.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/catch.hpp"
#include "tools/twill-bench/engine/http_reply.hpp"
#include "tools/twill-bench/engine/ws_frames.hpp"

using namespace twill::bench;
using namespace std::string_literals;
using namespace std::string_view_literals;

namespace {

using seen_frames = std::vector<std::pair<ws_opcode, std::string>>;

constexpr std::size_t limit_bytes = 100'000;

/// What a reader finds in bytes that it gets in pieces.
struct reading {
  seen_frames seen;
  bool sound = true, closed = false, at_boundary = false;
  std::string why;
};

reading read_in_steps(std::string_view bytes, std::size_t step, bool masked = false) {
  reading out;
  ws_reader reader(masked, limit_bytes);
  for (std::size_t at = 0; at < bytes.size() && out.sound; at += step) {
    const std::string part(bytes.substr(at, step)); // an allocation of its own
    out.sound = reader.feed(part, [&](ws_opcode kind, std::string_view payload) {
      out.seen.emplace_back(kind, payload);
    });
  }
  out.closed = reader.closed();
  out.at_boundary = reader.at_boundary();
  out.why = reader.why();
  return out;
}

std::string frame(ws_opcode kind, std::string_view payload, bool last = true) {
  std::string out;
  append_frame(out, kind, payload);
  if (!last) out[0] = static_cast<char>(out[0] & 0x7F);
  return out;
}

} // namespace

TEST_CASE("WebSocket messages are the same however the bytes are cut") {
  const std::string middle(126, 'm'), most(65'535, 'n'), large(65'536, 'l');
  const std::string bytes =
      frame(ws_opcode::text, "one") + frame(ws_opcode::text, "") +
      frame(ws_opcode::text, "frag", false) + frame(ws_opcode::ping, "still there?") +
      frame(ws_opcode::continuation, "men", false) + frame(ws_opcode::continuation, "ted") +
      frame(ws_opcode::binary, middle) + frame(ws_opcode::pong, "") + frame(ws_opcode::text, most) +
      frame(ws_opcode::text, large) + frame(ws_opcode::text, "after") +
      frame(ws_opcode::close, "\x03\xE9"
                              "bye");
  const seen_frames expected{{ws_opcode::text, "one"},
                             {ws_opcode::text, ""},
                             {ws_opcode::ping, "still there?"},
                             {ws_opcode::text, "fragmented"},
                             {ws_opcode::binary, middle},
                             {ws_opcode::pong, ""},
                             {ws_opcode::text, most},
                             {ws_opcode::text, large},
                             {ws_opcode::text, "after"},
                             {ws_opcode::close, "\x03\xE9"
                                                "bye"}};
  for (const std::size_t step : {1u, 2u, 3u, 5u, 7u, 64u, 131u, 1000u, 16384u, 1u << 20}) {
    CAPTURE(step);
    const reading result = read_in_steps(bytes + "what follows is not read", step);
    CHECK(result.sound);
    CHECK(result.seen == expected);
    CHECK(result.closed);
    CHECK(result.at_boundary);
  }
  CHECK(close_code("\x03\xE9"
                   "bye") == 1001);
  CHECK(close_code("") == 1005);
}

TEST_CASE("an unfinished WebSocket message is held and not handed on") {
  const std::string whole = frame(ws_opcode::text, "begin", false) +
                            frame(ws_opcode::continuation, std::string(300, 'e'));
  for (std::size_t n = 1; n < whole.size(); ++n) {
    const reading result = read_in_steps(std::string_view(whole).substr(0, n), 4);
    CHECK(result.sound);
    CHECK(result.seen.empty());
    CHECK_FALSE(result.at_boundary);
  }
}

TEST_CASE("a client's frames are masked as RFC 6455 masks its example") {
  std::string bytes;
  append_masked_frame(bytes, ws_opcode::text, "Hello", 0x3d21fa37u);
  CHECK(bytes == "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"sv);
  append_masked_frame(bytes, ws_opcode::text, std::string(70'000, 'x'), 0x01020304u);
  append_masked_frame(bytes, ws_opcode::ping, "p", 7);
  for (const std::size_t step : {1u, 6u, 5000u, 1u << 20})
    CHECK(read_in_steps(bytes, step, true).seen ==
          seen_frames{{ws_opcode::text, "Hello"},
                      {ws_opcode::text, std::string(70'000, 'x')},
                      {ws_opcode::ping, "p"}});
}

TEST_CASE("frames that break the protocol end the reading after what was sound") {
  std::string masked;
  append_masked_frame(masked, ws_opcode::text, "x", 1);
  const std::string part = frame(ws_opcode::text, std::string(60'000, 'p'), false);
  const std::vector<std::pair<std::string, std::string>> wrong{
      {masked, "a frame is masked"},
      {"\xC1\x01x", "a frame has reserved bits"},
      {frame(static_cast<ws_opcode>(3), "x"), "a frame has an unknown opcode"},
      {frame(static_cast<ws_opcode>(11), "x"), "a frame has an unknown opcode"},
      {frame(ws_opcode::continuation, "x"), "a frame continues no message"},
      {frame(ws_opcode::text, "x", false) + frame(ws_opcode::text, "x"),
       "a message begins within another"},
      {frame(ws_opcode::ping, "x", false), "a control frame is fragmented"},
      {frame(ws_opcode::ping, std::string(126, 'x')), "a control frame is too long"},
      {"\x81\x7F\x00\x00\x01\x00\x00\x00\x00\x00"s,
       "a message is too long"}, // found in the header alone
      {"\x81\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s, "a message is too long"},
      {frame(ws_opcode::text, std::string(limit_bytes + 1, 'x')), "a message is too long"},
      {part + frame(ws_opcode::continuation, std::string(60'000, 'p')), "a message is too long"}};
  for (const auto& [bytes, why] : wrong)
    for (const std::size_t step : {1u, 3u, 1u << 20}) {
      CAPTURE(why, step);
      const reading result = read_in_steps(frame(ws_opcode::text, "sound") + bytes, step);
      CHECK_FALSE(result.sound);
      CHECK(result.why == why);
      CHECK(result.seen == seen_frames{{ws_opcode::text, "sound"}});
    }
  CHECK(read_in_steps(frame(ws_opcode::text, std::string(limit_bytes, 'x')), 1u << 20).sound);
  CHECK(read_in_steps(frame(ws_opcode::text, "x"), 1, true).why == "a frame is not masked");
}

namespace {

constexpr const char* chunked_head =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

/// What a parser finds in a reply that it gets in pieces. The head decides how the body is read.
struct replied {
  std::string body;
  bool head_alone = true; ///< no byte of the body came before the head was known
  bool done = false;
  std::string left, error;
};

replied parse_in_steps(std::string_view bytes, std::size_t step, bool then_ends = false) {
  replied out;
  http_reply reply;
  boost::beast::flat_buffer buffer;
  boost::system::error_code error;
  bool chosen = false;
  for (std::size_t at = 0; at < bytes.size() && !error; at += step) {
    const std::string_view part = bytes.substr(at, step);
    buffer.commit(boost::asio::buffer_copy(buffer.prepare(part.size()),
                                           boost::asio::buffer(part.data(), part.size())));
    error = reply.parse(buffer);
    if (error || chosen || !reply.has_head()) continue;
    chosen = true;
    out.head_alone = reply.status() == 200;
    reply.on_body([&](std::string_view more) { out.body += more; });
    error = reply.parse(buffer);
  }
  if (then_ends && !error) error = reply.parse_end();
  out.done = reply.is_done();
  if (error) out.error = error.message();
  out.left.assign(static_cast<const char*>(buffer.data().data()), buffer.size());
  return out;
}

} // namespace

TEST_CASE("the body of a reply is the same however the bytes are cut") {
  const std::string chunked =
      std::string(chunked_head) +
      "5\r\nhello\r\n1;note=x\r\n,\r\n6\r\n world\r\n0\r\nTrailer: t\r\n\r\n";
  const std::string counted = "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nhello, world";
  for (const std::string& one : {chunked, counted})
    for (std::size_t step = 1; step <= one.size(); ++step) {
      CAPTURE(step);
      const replied result = parse_in_steps(one, step);
      CHECK(result.error.empty());
      CHECK(result.done);
      CHECK(result.head_alone);
      CHECK(result.body == "hello, world");
      CHECK(result.left.empty());
    }
  CHECK(parse_in_steps(counted + "HTTP/1.1", 1000).left == "HTTP/1.1");
}

TEST_CASE("a reply without a length ends with its connection, one with a length must not") {
  const std::string open_ended = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall of it";
  CHECK_FALSE(parse_in_steps(open_ended, 7).done);
  const replied ended = parse_in_steps(open_ended, 7, true);
  CHECK(ended.done);
  CHECK(ended.error.empty());
  CHECK(ended.body == "all of it");
  for (const std::string& cut :
       {""s, "HTTP/1.1 200"s, std::string(chunked_head), std::string(chunked_head) + "5\r\nhel",
        std::string(chunked_head) + "5\r\nhello\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nhello"s}) {
    const replied result = parse_in_steps(cut, 5, true);
    CHECK_FALSE(result.done);
    CHECK_FALSE(result.error.empty());
  }
}

TEST_CASE("a reply that is none is an error") {
  CHECK_FALSE(parse_in_steps("SSH-2.0-x\r\n\r\n", 3).error.empty());
  const replied bad_chunk = parse_in_steps(std::string(chunked_head) + "3\r\nabc\r\nxyz\r\n", 4);
  CHECK_FALSE(bad_chunk.error.empty());
  CHECK(bad_chunk.body == "abc");
}
