#include "tools/twill-bench/engine/json_scan.hpp"

#include <charconv>

namespace twill::bench::json_scan {
namespace {

constexpr std::size_t npos = std::string_view::npos;

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

std::size_t skip_spaces(std::string_view text, std::size_t at) {
  while (at < text.size() && is_space(text[at]))
    ++at;
  return at;
}

/// The offset after the closing quote of the string that starts at `at`, or npos.
std::size_t skip_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '\\')
      ++at;
    else if (text[at] == '"')
      return at + 1;
  }
  return npos;
}

/// The offset after the value that starts at `at`, or npos when the value does not end.
std::size_t skip_value(std::string_view text, std::size_t at) {
  if (at >= text.size()) return npos;
  if (text[at] == '"') return skip_string(text, at);
  if (text[at] != '{' && text[at] != '[') {
    const std::size_t end = text.find_first_of(",]} \t\r\n", at);
    return end == npos ? text.size() : (end == at ? npos : end);
  }
  std::size_t depth = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '"') {
      at = skip_string(text, at);
      if (at == npos) return npos;
      continue;
    }
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && --depth == 0) return at + 1;
    ++at;
  }
  return npos;
}

/// Calls visit(raw) for each element of an array until it returns false.
template <class Visit>
void each_element(std::string_view array, Visit visit) {
  std::size_t at = skip_spaces(array, 0);
  if (at >= array.size() || array[at] != '[') return;
  at = skip_spaces(array, at + 1);
  while (at < array.size() && array[at] != ']') {
    const std::size_t end = skip_value(array, at);
    if (end == npos || !visit(array.substr(at, end - at))) return;
    at = skip_spaces(array, end);
    if (at >= array.size() || array[at] != ',') return;
    at = skip_spaces(array, at + 1);
  }
}

void append_utf8(std::string& out, std::uint32_t code) {
  if (code < 0x80) {
    out += char(code);
  } else if (code < 0x800) {
    out += char(0xC0 | (code >> 6));
    out += char(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += char(0xE0 | (code >> 12));
    out += char(0x80 | ((code >> 6) & 0x3F));
    out += char(0x80 | (code & 0x3F));
  } else {
    out += char(0xF0 | (code >> 18));
    out += char(0x80 | ((code >> 12) & 0x3F));
    out += char(0x80 | ((code >> 6) & 0x3F));
    out += char(0x80 | (code & 0x3F));
  }
}

/// The value of the four hex digits at `at`, or U+FFFD when they are not hex digits.
std::uint32_t hex4(std::string_view body, std::size_t at) {
  if (at + 4 > body.size()) return 0xFFFD;
  std::uint32_t code = 0;
  const char* first = body.data() + at;
  const auto [end, error] = std::from_chars(first, first + 4, code, 16);
  return error == std::errc{} && end == first + 4 ? code : 0xFFFD;
}

/// Decodes the \u escape whose digits start at `at`. Returns how many characters it used.
std::size_t append_unicode(std::string& out, std::string_view body, std::size_t at) {
  const std::uint32_t high = hex4(body, at);
  if (high < 0xD800 || high > 0xDFFF) {
    append_utf8(out, high);
    return 4;
  }
  if (high < 0xDC00 && body.substr(at + 4, 2) == "\\u") {
    const std::uint32_t low = hex4(body, at + 6);
    if (low >= 0xDC00 && low <= 0xDFFF) {
      append_utf8(out, 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00));
      return 10;
    }
  }
  append_utf8(out, 0xFFFD);
  return 4;
}

} // namespace

members::members(std::string_view object) : object_(object) {
  at_ = skip_spaces(object, 0);
  at_ = at_ < object.size() && object[at_] == '{' ? skip_spaces(object, at_ + 1) : object.size();
}

bool members::next() {
  std::size_t at = at_;
  at_ = object_.size();
  if (at >= object_.size() || object_[at] != '"') return false;
  const std::size_t key_end = skip_string(object_, at);
  if (key_end == npos) return false;
  key_ = object_.substr(at + 1, key_end - at - 2);
  at = skip_spaces(object_, key_end);
  if (at >= object_.size() || object_[at] != ':') return false;
  at = skip_spaces(object_, at + 1);
  const std::size_t end = skip_value(object_, at);
  if (end == npos) return false;
  value_ = object_.substr(at, end - at);
  at = skip_spaces(object_, end);
  if (at < object_.size() && object_[at] == ',') at_ = skip_spaces(object_, at + 1);
  return true;
}

std::string_view member(std::string_view object, std::string_view key) {
  for (members each(object); each.next();)
    if (each.key() == key) return each.value();
  return {};
}

std::string_view element(std::string_view array, std::size_t index) {
  std::string_view found;
  each_element(array, [&](std::string_view raw) {
    if (index == 0) found = raw;
    return index-- != 0;
  });
  return found;
}

std::size_t length(std::string_view array) {
  std::size_t n = 0;
  each_element(array, [&](std::string_view) { return ++n, true; });
  return n;
}

bool present(std::string_view raw) {
  return !raw.empty() && raw != "null";
}

std::optional<std::int64_t> integer(std::string_view raw) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(raw.data(), raw.data() + raw.size(), value);
  if (raw.empty() || error != std::errc{} || end != raw.data() + raw.size()) return std::nullopt;
  return value;
}

std::vector<std::int32_t> integers(std::string_view array) {
  std::vector<std::int32_t> out;
  if (array.empty() || array.front() != '[') return out;
  for (std::string_view rest = array.substr(1); !rest.empty();) {
    const std::size_t end = rest.find_first_of(",]");
    if (end == std::string_view::npos) break;
    std::string_view digits = rest.substr(0, end);
    while (!digits.empty() && digits.front() == ' ')
      digits.remove_prefix(1);
    if (const auto id = integer(digits)) out.push_back(static_cast<std::int32_t>(*id));
    rest.remove_prefix(end + 1);
  }
  return out;
}

std::string_view string_body(std::string_view raw) {
  if (raw.size() < 2 || raw.front() != '"' || raw.back() != '"') return {};
  return raw.substr(1, raw.size() - 2);
}

std::string decode(std::string_view raw) {
  const std::string_view body = string_body(raw);
  std::string out;
  out.reserve(body.size());
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (body[i] != '\\' || i + 1 >= body.size()) {
      out += body[i];
      continue;
    }
    switch (const char c = body[++i]) {
    case 'n':
      out += '\n';
      break;
    case 't':
      out += '\t';
      break;
    case 'r':
      out += '\r';
      break;
    case 'b':
      out += '\b';
      break;
    case 'f':
      out += '\f';
      break;
    case 'u':
      i += append_unicode(out, body, i + 1);
      break;
    default:
      out += c;
    }
  }
  return out;
}

} // namespace twill::bench::json_scan
