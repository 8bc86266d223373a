// Random bytes over loopback sockets to a whole server with a scripted engine in place of a model:
// see README.md.
//
// Whatever bytes the server receives, what it sends must be well-formed, and it must close the
// connection in time.
#include <poll.h>
#include <sys/socket.h>

#include <stdexcept>

#include "net/protocol/json/json_parse.hpp"
#include "tests/fuzz/driver.hpp"
#include "tests/net/support/running_server.hpp"

namespace {

using namespace twill;
using namespace twill::testing;
using fuzz::expect;

running_server& the_server() {
  // Never destroyed: a failed check ends the program while the server's threads run.
  static auto* const only = [] {
    config::server_options limits;
    limits.max_frame_bytes = 4096;
    limits.max_body_bytes = 8192;
    script play;
    play.step = 0us;
    return new running_server(limits, play);
  }();
  return *only;
}

/// Sends the bytes, closes the client's half, and returns what the server sends until it closes.
std::string talk(client& socket, std::string_view bytes) {
  socket.try_send(bytes);
  socket.shutdown_send();
  std::string said;
  try {
    for (;;)
      said += socket.read_until("\n", std::chrono::milliseconds(10'000));
  } catch (const std::runtime_error& end) {
    const std::string_view why = end.what();
    expect(why.starts_with("closed"), "the server closes what its client has closed");
    said += socket.rest();
  }
  return said;
}

unsigned byte(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

/// Checks the WebSocket frames of a server (RFC 6455): no masks, no reserved bits, short control
/// frames, text that is JSON, and nothing after a close frame.
void check_frames(std::string_view said) {
  bool closed = false;
  while (said.size() >= 2) {
    const unsigned opcode = byte(said, 0) & 15U;
    expect(!closed, "nothing follows a close frame");
    expect((byte(said, 0) & 0x70U) == 0 && (byte(said, 1) & 0x80U) == 0,
           "no reserved bit, no mask");
    expect(opcode == 1 || opcode >= 8, "only text and control frames are sent, unfragmented");
    std::size_t size = byte(said, 1) & 127U;
    std::size_t head = 2;
    if (size >= 126) {
      head += size == 126 ? 2 : 8;
      if (said.size() < head) return;
      size = 0;
      for (std::size_t i = 2; i < head; ++i)
        size = size << 8 | byte(said, i);
    }
    expect(opcode < 8 || size < 126, "control frames are short");
    if (said.size() - head < size) return; // cut by a client that left
    const auto payload = said.substr(head, size);
    if (opcode == 1) expect(net::parse_json(payload).ok(), "a text frame is JSON");
    closed = opcode == 8;
    said.remove_prefix(head + size);
  }
}

template <const char* path>
void fuzz_websocket(std::string_view bytes) {
  client socket(the_server().port());
  expect(socket.upgrade(path) == 101, "the handshake is accepted");
  check_frames(talk(socket, bytes));
}

/// Whatever the bytes are, a reply begins as HTTP does, and the next client is served.
void fuzz_http(std::string_view bytes) {
  client socket(the_server().port());
  const auto said = talk(socket, bytes);
  expect(said.empty() || said.starts_with("HTTP/1."), "a reply is HTTP");
  client next(the_server().port());
  expect(next.get("/health").status == 200, "the next client is served");
}

std::string frame(unsigned first, const std::string& payload) {
  std::string out{static_cast<char>(first), static_cast<char>(0x80 | payload.size())};
  out.append(4, '\0'); // a mask of zeros
  return out + payload;
}

constexpr char stream_path[] = "/v1/stream";
constexpr char responses_path[] = "/v1/responses";

} // namespace

const std::map<std::string, fuzz::target>& fuzz::targets() {
  static const std::string submit = R"({"op":"submit","id":1,"prompt":"x","max_tokens":2})";
  static const std::string turn = R"({"type":"response.create","input":"x"})";
  static const std::map<std::string, target> all{
      {"ws_stream",
       {fuzz_websocket<stream_path>,
        {frame(0x81, submit),
         frame(0x01, submit.substr(0, 9)) + frame(0x89, "ping") + frame(0x80, submit.substr(9)) +
             frame(0x88, "\x03\xe8"
                         "bye"),
         frame(0x82, "binary"), frame(0xc1, "{}"), frame(0x8a, "") + frame(0x83, "x"),
         frame(0x81, R"({"op":"cancel","id":1})") + frame(0x88, "\x03")}}},
      {"ws_responses",
       {fuzz_websocket<responses_path>,
        {frame(0x81, turn) + frame(0x81, turn), frame(0x81, "[]")}}},
      {"wire",
       {fuzz_http,
        {post_text("/v1/completions", R"({"prompt":"x","max_tokens":2,"stream":true})") +
             "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
         "POST /v1/completions HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
         "e\r\n{\"prompt\":\"x\"}\r\n0\r\nX: y\r\n\r\nHEAD /ready HTTP/1.1\r\nHost: h\r\n\r\n",
         "POST /v1/files HTTP/1.1\r\nHost: h\r\nContent-Type: multipart/form-data; "
         "boundary=s\r\nContent-Length: 97\r\n\r\n--s\r\nContent-Disposition: form-data; "
         "name=\"file\"; filename=\"a\"\r\n\r\n{\"custom_id\":\"a\"}\r\n--s--\r\n          ",
         "GET /v1/files?limit=1&after=x HTTP/1.1\r\nHost: localhost\r\nConnection: "
         "close\r\n\r\n"}}},
  };
  return all;
}
