#include "net/tracing/trace_parent.hpp"

#include <algorithm>
#include <span>

namespace twill::net {
namespace {

/// Returns the value of a lower-case hexadecimal digit, or -1 for any other character; the standard
/// requires lower case.
int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool read_hex(std::string_view text, std::span<std::uint8_t> to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    const int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    to[i] = static_cast<std::uint8_t>(16 * high + low);
  }
  return true;
}

bool is_zero(std::span<const std::uint8_t> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t b) { return b == 0; });
}

} // namespace

std::optional<trace_parent> read_trace_parent(std::string_view text) {
  constexpr std::size_t length = 55; // "VV-" 32 digits "-" 16 digits "-FF"
  if (text.size() < length || text[2] != '-' || text[35] != '-' || text[52] != '-')
    return std::nullopt;
  std::array<std::uint8_t, 1> version{}, flags{};
  trace_parent read;
  if (!read_hex(text, version) || version[0] == 0xff || !read_hex(text.substr(3), read.trace) ||
      !read_hex(text.substr(36), read.span) || !read_hex(text.substr(53), flags))
    return std::nullopt;
  if (text.size() > length && (version[0] == 0 || text[length] != '-')) return std::nullopt;
  if (is_zero(read.trace) || is_zero(read.span)) return std::nullopt;
  read.sampled = (flags[0] & 1) != 0;
  return read;
}

} // namespace twill::net
