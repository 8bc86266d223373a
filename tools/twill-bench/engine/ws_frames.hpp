// ws_frames: reads WebSocket messages from a byte stream, however it is split, and writes them as
// frames (RFC 6455).
//
// Beast reads one message per operation, and its header and payload separately. The reader in this
// file takes all frames in the bytes of one read in one pass, and passes on a message without a
// copy when those bytes contain all of it. Beast still does the handshake. The code is not bound to
// a socket and does not check UTF-8.
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
  /// Receives a whole message (text or binary, with its fragments joined) or a control frame. The
  /// payload is valid during the call.
  using on_frame = std::function<void(ws_opcode, std::string_view payload)>;

  /// `masked` says whether the frames of the peer must be masked (the peer is a client) or must not
  /// be.
  ws_reader(bool masked, std::size_t max_message_bytes)
      : masked_(masked), max_message_bytes_(max_message_bytes) {}

  /// Passes on every message and control frame that `bytes` completes; bytes after a close frame
  /// are dropped. Returns false when the bytes break the protocol or the size limit: why() then
  /// gives the reason, and the rest is not read.
  bool feed(std::string_view bytes, const on_frame& take);
  const std::string& why() const { return why_; }
  bool closed() const { return closed_; }
  /// True when the reader holds no part of an unfinished frame or message.
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
  std::size_t want_ = 0;             ///< bytes that `held_` must have before it is parsed again
  std::string message_;              ///< the fragments received so far
  ws_opcode kind_ = ws_opcode::text; ///< of the fragmented message
  bool fragmented_ = false, closed_ = false;
  std::string why_;
};

/// Appends one whole unmasked frame, as servers send it.
void append_frame(std::string& out, ws_opcode kind, std::string_view payload);
/// Appends one whole masked frame, as clients send it.
void append_masked_frame(std::string& out, ws_opcode kind, std::string_view payload,
                         std::uint32_t mask);

/// The code in the payload of a close frame; 1005 when the payload has none.
unsigned close_code(std::string_view payload);

} // namespace twill::bench
