#include "models/text/jinja/text.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <cstdint>

namespace twill::models::jinja {
namespace {

void add_span(spans& taint, std::size_t begin, std::size_t end) {
  if (begin == end) return;
  if (!taint.empty() && taint.back().second == begin)
    taint.back().second = end;
  else
    taint.emplace_back(begin, end);
}

bool is_ascii(std::string_view s) {
  return std::all_of(s.begin(), s.end(),
                     [](char c) { return static_cast<std::uint8_t>(c) < 0x80; });
}

bool is_lead(char c) {
  return (static_cast<std::uint8_t>(c) & 0xC0) != 0x80;
}

const pcre2_code* any_text() {
  static const pcre2_code* const code = [] {
    int error = 0;
    PCRE2_SIZE at = 0;
    return pcre2_compile(reinterpret_cast<PCRE2_SPTR>("(?s).+"), PCRE2_ZERO_TERMINATED,
                         PCRE2_UTF | PCRE2_UCP, &error, &at, nullptr);
  }();
  return code;
}

} // namespace

void text::append(std::string_view s, bool tainted_bytes) {
  if (tainted_bytes) add_span(taint, bytes.size(), bytes.size() + s.size());
  bytes.append(s);
}

void text::append(const text& other) {
  append(other, 0, other.bytes.size());
}

void text::append(const text& other, std::size_t begin, std::size_t end) {
  const std::size_t base = bytes.size();
  bytes.append(other.bytes, begin, end - begin);
  auto it = std::partition_point(other.taint.begin(), other.taint.end(),
                                 [begin](const auto& r) { return r.second <= begin; });
  for (; it != other.taint.end() && it->first < end; ++it)
    add_span(taint, base + std::max(it->first, begin) - begin,
             base + std::min(it->second, end) - begin);
}

text slice_bytes(const text& source, std::size_t begin, std::size_t end) {
  text out;
  out.append(source, begin, end);
  return out;
}

std::size_t count_characters(std::string_view s) {
  return static_cast<std::size_t>(std::count_if(s.begin(), s.end(), is_lead));
}

std::vector<std::size_t> character_offsets(std::string_view s) {
  std::vector<std::size_t> offsets;
  offsets.reserve(s.size() + 1);
  for (std::size_t i = 0; i < s.size(); ++i)
    if (is_lead(s[i])) offsets.push_back(i);
  offsets.push_back(s.size());
  return offsets;
}

char32_t character_at(std::string_view s, std::size_t at, std::size_t& length) {
  const auto byte = [&](std::size_t i) {
    return i < s.size() ? static_cast<std::uint8_t>(s[i]) : std::uint8_t{0x80};
  };
  const unsigned lead = byte(at);
  length = lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  length = std::min(length, s.size() - at);
  if (length == 1) return lead;
  char32_t c = lead & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i)
    c = c << 6 | (byte(at + i) & 0x3F);
  return c;
}

void append_character(std::string& out, char32_t c) {
  const auto put = [&out](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6);
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

std::string change_case(std::string_view s, bool upper) {
  if (is_ascii(s)) {
    std::string out(s);
    for (char& c : out) {
      if (upper && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
      if (!upper && c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return out;
  }
  // PCRE2 has the Unicode case table, and a substitution with \U or \L applies it.
  std::string out(s.size() + s.size() / 2 + 16, '\0'); // case mapping adds at most half of the size
  PCRE2_SIZE length = out.size();
  const char* replacement = upper ? "\\U$0" : "\\L$0";
  const int done =
      pcre2_substitute(any_text(), reinterpret_cast<PCRE2_SPTR>(s.data()), s.size(), 0,
                       PCRE2_SUBSTITUTE_EXTENDED | PCRE2_NO_UTF_CHECK, nullptr, nullptr,
                       reinterpret_cast<PCRE2_SPTR>(replacement), PCRE2_ZERO_TERMINATED,
                       reinterpret_cast<PCRE2_UCHAR*>(out.data()), &length);
  if (done < 0) return std::string(s);
  out.resize(length);
  return out;
}

} // namespace twill::models::jinja
