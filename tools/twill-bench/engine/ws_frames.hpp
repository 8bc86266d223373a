// ws_frames: WebSocket messages out of a byte stream, in any chunking, and into one (RFC 6455).
//
// Beast reads one message per operation, with a header and a payload read apart; here all frames
// that one read brought are taken in one pass, and a message that lies whole in it is handed on
// without a copy. The handshake stays Beast's. Not bound to a socket; not checked: UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace twill::bench {

enum class ws_opcode : std::uint8_t {
  continuation = 0,
  text = 1,
  binary = 2,
  close = 8,
  ping = 9,
  pong = 10,
};

class ws_reader {
public:
  /// A message (text or binary, its fragments put together), or a control frame. The payload is
  /// valid during the call.
  using on_frame = std::function<void(ws_opcode, std::string_view payload)>;

  /// `masked`: what the peer sends must be masked (it is a client), or must not be.
  ws_reader(bool masked, std::size_t max_message_bytes)
      : masked_(masked), max_message_bytes_(max_message_bytes) {}

  /// Hands on what `bytes` completes; nothing after a close frame. False when they break the
  /// protocol or the limit: `why()` says how, and the rest is not read.
  bool feed(std::string_view bytes, const on_frame& take);
  const std::string& why() const { return why_; }
  bool closed() const { return closed_; }
  /// True when nothing of an unfinished frame or message is held.
  bool at_boundary() const { return held_.empty() && !fragmented_; }

private:
  struct frame;
  bool read_header(std::string_view bytes, frame& out);
  bool check(const frame& header);
  void deliver(const frame& header, std::string_view payload, const on_frame& take);
  bool fail(const char* why);

  bool masked_;
  std::size_t max_message_bytes_;
  std::string held_;                 ///< an unfinished frame
  std::size_t want_ = 0;             ///< bytes of `held_` before it is worth looking at again
  std::string message_;              ///< the fragments so far
  ws_opcode kind_ = ws_opcode::text; ///< of the fragmented message
  bool fragmented_ = false, closed_ = false;
  std::string why_;
};

/// Appends one whole frame, unmasked, as servers send.
void append_frame(std::string& out, ws_opcode kind, std::string_view payload);
/// Appends a frame as a client sends it, masked.
void append_masked_frame(std::string& out, ws_opcode kind, std::string_view payload,
                         std::uint32_t mask);

/// The code of a close frame's payload; 1005 when there is none.
unsigned close_code(std::string_view payload);

} // namespace twill::bench
