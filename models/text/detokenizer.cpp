#include "models/text/detokenizer.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace twill::models {
namespace {

constexpr const char* replacement = "\xEF\xBF\xBD"; // U+FFFD

struct scan {
  std::size_t length; ///< bytes of a whole character, of the maximal subpart of an invalid
                      ///< character, or of the part of an unfinished character
  enum { whole, invalid, unfinished } state;
};

/// Reads one character at the front of `s` (not empty), by table 3-7 of the Unicode standard.
scan scan_character(std::string_view s) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(s[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {1, scan::whole};
  if (lead < 0xC2 || lead > 0xF4) return {1, scan::invalid};
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The range of the second byte excludes overlong forms, surrogates and code points > U+10FFFF.
  unsigned least = 0x80, most = 0xBF;
  if (lead == 0xE0) least = 0xA0;
  if (lead == 0xED) most = 0x9F;
  if (lead == 0xF0) least = 0x90;
  if (lead == 0xF4) most = 0x8F;
  for (std::size_t i = 1; i < length; ++i) {
    if (i == s.size()) return {i, scan::unfinished};
    if (byte(i) < least || byte(i) > most) return {i, scan::invalid};
    least = 0x80, most = 0xBF;
  }
  return {length, scan::whole};
}

} // namespace

void take_utf8(std::string& bytes, std::string& out) {
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const scan c = scan_character(rest);
    if (c.state == scan::unfinished) break;
    if (c.state == scan::whole)
      out.append(rest.substr(0, c.length));
    else
      out.append(replacement);
    rest.remove_prefix(c.length);
  }
  bytes.erase(0, bytes.size() - rest.size());
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    if (static_cast<std::uint8_t>(text.front()) < 0x80) {
      text.remove_prefix(1);
      continue;
    }
    const scan c = scan_character(text);
    if (c.state != scan::whole) return false;
    text.remove_prefix(c.length);
  }
  return true;
}

std::string detokenizer::push(token_id id) {
  const bool special =
      !skip_special_ || std::find(shown_.begin(), shown_.end(), id) != shown_.end();
  std::string bytes = source_->token_bytes(id, special);
  if (at_start_ && !bytes.empty()) {
    at_start_ = false;
    if (source_->drops_leading_space(id)) bytes.erase(0, 1);
  }
  pending_ += bytes;
  std::string text;
  take_utf8(pending_, text);
  return text;
}

std::string detokenizer::flush() {
  if (pending_.empty()) return {};
  pending_.clear(); // the pending bytes are one maximal subpart
  return replacement;
}

} // namespace twill::models
