#include "tools/twill-bench/engine/ws_frames.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace twill::bench {
namespace {

constexpr std::uint8_t final_bit = 0x80, reserved_bits = 0x70, opcode_bits = 0x0F;
constexpr std::uint8_t mask_bit = 0x80, length_bits = 0x7F;
constexpr std::size_t mask_bytes = 4, most_control_bytes = 125;

std::uint8_t byte_at(std::string_view bytes, std::size_t at) {
  return static_cast<std::uint8_t>(bytes[at]);
}

void append_header(std::string& out, ws_opcode kind, std::size_t length, std::uint8_t masked) {
  out += static_cast<char>(final_bit | static_cast<std::uint8_t>(kind));
  if (length < 126) {
    out += static_cast<char>(masked | length);
    return;
  }
  const int n = length <= 0xFFFF ? 2 : 8;
  out += static_cast<char>(masked | (n == 2 ? 126 : 127));
  for (int shift = 8 * (n - 1); shift >= 0; shift -= 8)
    out += static_cast<char>((std::uint64_t(length) >> shift) & 0xFF);
}

void apply_mask(char* bytes, std::size_t n, const std::array<char, mask_bytes>& mask) {
  for (std::size_t i = 0; i < n; ++i)
    bytes[i] = static_cast<char>(bytes[i] ^ mask[i % mask_bytes]);
}

} // namespace

struct ws_reader::frame {
  ws_opcode kind = ws_opcode::text;
  bool last = true;
  bool control = false;
  bool masked = false;
  std::array<char, mask_bytes> mask{};
  std::size_t header_bytes = 0; ///< 0: the header has not arrived completely
  std::uint64_t length = 0;
};

bool ws_reader::fail(const char* why) {
  why_ = why;
  return false;
}

/// Returns false when the header is invalid. For an incomplete header it returns true and leaves
/// `header_bytes` 0.
bool ws_reader::read_header(std::string_view bytes, frame& out) {
  if (bytes.size() < 2) return true;
  const std::uint8_t first = byte_at(bytes, 0), second = byte_at(bytes, 1);
  if (first & reserved_bits) return fail("a frame has reserved bits");
  out.kind = static_cast<ws_opcode>(first & opcode_bits);
  out.last = first & final_bit;
  out.control = (first & 0x08) != 0;
  out.masked = second & mask_bit;
  out.length = second & length_bits;
  std::size_t at = 2;
  if (out.length >= 126) {
    const std::size_t n = out.length == 126 ? 2 : 8;
    if (bytes.size() < at + n) return true;
    out.length = 0;
    for (std::size_t i = 0; i < n; ++i)
      out.length = out.length << 8 | byte_at(bytes, at + i);
    at += n;
  }
  if (out.masked) {
    if (bytes.size() < at + mask_bytes) return true;
    std::memcpy(out.mask.data(), bytes.data() + at, mask_bytes);
    at += mask_bytes;
  }
  out.header_bytes = at;
  return check(out);
}

bool ws_reader::check(const frame& header) {
  if (header.masked != masked_)
    return fail(masked_ ? "a frame is not masked" : "a frame is masked");
  switch (header.kind) {
  case ws_opcode::close:
  case ws_opcode::ping:
  case ws_opcode::pong:
    if (!header.last) return fail("a control frame is fragmented");
    if (header.length > most_control_bytes) return fail("a control frame is too long");
    return true;
  case ws_opcode::continuation:
    if (!fragmented_) return fail("a frame continues no message");
    break;
  case ws_opcode::text:
  case ws_opcode::binary:
    if (fragmented_) return fail("a message begins within another");
    break;
  default:
    return fail("a frame has an unknown opcode");
  }
  if (header.length > max_message_bytes_ - std::min(max_message_bytes_, message_.size()))
    return fail("a message is too long");
  return true;
}

void ws_reader::deliver(const frame& header, std::string_view payload, const on_frame& take) {
  if (header.control) {
    closed_ = header.kind == ws_opcode::close;
    return take(header.kind, payload);
  }
  if (header.last && !fragmented_) return take(header.kind, payload);
  if (!fragmented_) kind_ = header.kind;
  fragmented_ = !header.last;
  message_ += payload;
  if (fragmented_) return;
  take(kind_, message_);
  message_.clear();
}

bool ws_reader::feed(std::string_view bytes, const on_frame& take) {
  const bool joined = !held_.empty();
  if (joined) {
    held_ += bytes;
    if (held_.size() < want_) return true;
    bytes = held_;
  }
  std::size_t at = 0;
  want_ = 0;
  while (at < bytes.size() && !closed_) {
    frame header;
    const std::string_view rest = bytes.substr(at);
    if (!read_header(rest, header)) return false;
    if (header.header_bytes == 0) break;
    if (rest.size() - header.header_bytes < header.length) {
      want_ = header.header_bytes + static_cast<std::size_t>(header.length);
      break;
    }
    const std::string_view raw = rest.substr(header.header_bytes, header.length);
    at += header.header_bytes + raw.size();
    if (header.masked) {
      std::string clear(raw);
      apply_mask(clear.data(), clear.size(), header.mask);
      deliver(header, clear, take);
    } else {
      deliver(header, raw, take);
    }
  }
  if (joined)
    held_.erase(0, closed_ ? held_.size() : at);
  else if (!closed_)
    held_.assign(bytes.substr(at));
  return true;
}

void append_frame(std::string& out, ws_opcode kind, std::string_view payload) {
  append_header(out, kind, payload.size(), 0);
  out += payload;
}

void append_masked_frame(std::string& out, ws_opcode kind, std::string_view payload,
                         std::uint32_t mask) {
  append_header(out, kind, payload.size(), mask_bit);
  std::array<char, mask_bytes> key{};
  std::memcpy(key.data(), &mask, mask_bytes);
  out.append(key.data(), key.size());
  const std::size_t begin = out.size();
  out += payload;
  apply_mask(out.data() + begin, payload.size(), key);
}

unsigned close_code(std::string_view payload) {
  return payload.size() < 2 ? 1005u : unsigned(byte_at(payload, 0)) << 8 | byte_at(payload, 1);
}

} // namespace twill::bench
