#include "models/text/jinja/text_ops.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace twill::models::jinja {
namespace {

/// True if the character `c` is to be stripped.
bool is_stripped(std::string_view c, const text* chars) {
  if (chars != nullptr) return chars->bytes.find(c) != std::string::npos;
  std::size_t length = 0;
  return is_space(character_at(c, 0, length));
}

/// Makes the result of a transformation. The whole result is tainted if any part of `source` is.
text transformed(const text& source, std::string bytes) {
  return text(std::move(bytes), source.tainted());
}

std::vector<text> split_space(const text& t, std::int64_t most, bool from_right) {
  std::vector<std::pair<std::size_t, std::size_t>> words;
  const auto offsets = character_offsets(t.bytes);
  std::size_t begin = std::string::npos;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    std::size_t length = 0;
    const bool space =
        i + 1 == offsets.size() || is_space(character_at(t.bytes, offsets[i], length));
    if (!space && begin == std::string::npos) begin = offsets[i];
    if (space && begin != std::string::npos) {
      words.emplace_back(begin, offsets[i]);
      begin = std::string::npos;
    }
  }
  std::vector<text> out;
  const std::size_t n = words.size();
  const std::size_t cuts = most < 0 ? n : static_cast<std::size_t>(most);
  if (n > cuts + 1 && !from_right) { // the rest is one part, without white space on its left
    const text rest =
        strip(slice_bytes(t, words[cuts].first, t.bytes.size()), nullptr, sides::left);
    words.resize(cuts);
    for (const auto& [b, e] : words)
      out.push_back(slice_bytes(t, b, e));
    out.push_back(rest);
    return out;
  }
  if (n > cuts + 1) {
    out.push_back(strip(slice_bytes(t, 0, words[n - cuts - 1].second), nullptr, sides::right));
    words.erase(words.begin(), words.end() - static_cast<std::ptrdiff_t>(cuts));
  }
  for (const auto& [b, e] : words)
    out.push_back(slice_bytes(t, b, e));
  return out;
}

bool is_line_end(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

/// The upper-case and the lower-case form of every character, for operations that need both.
struct both_cases {
  explicit both_cases(const text& t)
      : upper(change_case(t.bytes, true)), lower(change_case(t.bytes, false)),
        upper_at(character_offsets(upper)), lower_at(character_offsets(lower)),
        source_at(character_offsets(t.bytes)) {}

  std::size_t size() const { return source_at.size() - 1; }
  std::string_view character(std::size_t i, bool is_upper) const {
    const auto& s = is_upper ? upper : lower;
    const auto& at = is_upper ? upper_at : lower_at;
    return std::string_view(s).substr(at[i], at[i + 1] - at[i]);
  }
  bool cased(std::size_t i) const { return character(i, true) != character(i, false); }

  std::string upper, lower;
  std::vector<std::size_t> upper_at, lower_at, source_at;
};

} // namespace

text strip(const text& t, const text* chars, sides which) {
  const auto offsets = character_offsets(t.bytes);
  std::size_t first = 0, last = offsets.size() - 1;
  const auto stripped = [&](std::size_t i) {
    return is_stripped(std::string_view(t.bytes).substr(offsets[i], offsets[i + 1] - offsets[i]),
                       chars);
  };
  if (which != sides::right)
    while (first < last && stripped(first))
      ++first;
  if (which != sides::left)
    while (last > first && stripped(last - 1))
      --last;
  return slice_bytes(t, offsets[first], offsets[last]);
}

text replace(runtime& rt, const text& t, const text& from, const text& to, std::int64_t most) {
  text out;
  std::size_t done = 0;
  const auto left = [&] { return most < 0 || most-- > 0; };
  const auto put = [&](std::size_t upto) {
    out.append(t, done, upto);
    out.append(to);
    rt.add_work(1 + to.bytes.size() / 64);
    if (out.bytes.size() > (16u << 20)) rt.charge_text(out.bytes.size());
  };
  if (from.bytes.empty()) { // inserts between all characters
    for (const std::size_t at : character_offsets(t.bytes)) {
      if (!left()) break;
      put(at);
      done = at;
    }
  } else {
    for (std::size_t at = t.bytes.find(from.bytes); at != std::string::npos && left();
         at = t.bytes.find(from.bytes, done)) {
      put(at);
      done = at + from.bytes.size();
    }
  }
  out.append(t, done, t.bytes.size());
  return out;
}

std::vector<text> split(runtime& rt, const text& t, const text* separator, std::int64_t most,
                        bool from_right) {
  rt.add_work(t.bytes.size() / 16);
  if (separator == nullptr) return split_space(t, most, from_right);
  if (separator->bytes.empty()) rt.fail("empty separator");
  const std::string& sep = separator->bytes;
  std::vector<text> out;
  if (!from_right) {
    std::size_t begin = 0;
    for (std::size_t at = t.bytes.find(sep); at != std::string::npos && most != 0;
         at = t.bytes.find(sep, begin), --most) {
      out.push_back(slice_bytes(t, begin, at));
      begin = at + sep.size();
    }
    out.push_back(slice_bytes(t, begin, t.bytes.size()));
    return out;
  }
  std::size_t end = t.bytes.size();
  while (most != 0 && end >= sep.size()) {
    const std::size_t at = t.bytes.rfind(sep, end - sep.size());
    if (at == std::string::npos) break;
    out.push_back(slice_bytes(t, at + sep.size(), end));
    end = at;
    --most;
  }
  out.push_back(slice_bytes(t, 0, end));
  std::reverse(out.begin(), out.end());
  return out;
}

std::vector<text> split_lines(const text& t, bool keep_ends) {
  std::vector<text> out;
  const std::string& s = t.bytes;
  std::size_t begin = 0;
  for (std::size_t i = 0, n = 1; i < s.size(); i += n) {
    if (!is_line_end(character_at(s, i, n))) continue;
    std::size_t next = i + n;
    if (s[i] == '\r' && next < s.size() && s[next] == '\n') ++next;
    out.push_back(slice_bytes(t, begin, keep_ends ? next : i));
    begin = next;
    n = next - i;
  }
  if (begin < s.size()) out.push_back(slice_bytes(t, begin, s.size()));
  return out;
}

text join(runtime& rt, const text& separator, const std::vector<text>& parts) {
  std::size_t size = parts.empty() ? 0 : separator.bytes.size() * (parts.size() - 1);
  for (const text& part : parts)
    size += part.bytes.size();
  rt.charge_text(size);
  text out;
  out.bytes.reserve(size);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out.append(separator);
    out.append(parts[i]);
  }
  return out;
}

text with_case(const text& t, bool upper) {
  constexpr std::string_view sharp_s = "\u00DF"; // a common letter; its upper case is "SS"
  std::string source = t.bytes;
  for (std::size_t at = 0; upper && (at = source.find(sharp_s, at)) != std::string::npos; at += 2)
    source.replace(at, sharp_s.size(), "SS");
  return transformed(t, change_case(source, upper));
}

text capitalize(const text& t) {
  const both_cases cases(t);
  std::string out;
  for (std::size_t i = 0; i < cases.size(); ++i)
    out += cases.character(i, i == 0);
  return transformed(t, std::move(out));
}

text title(const text& t) {
  const both_cases cases(t);
  std::string out;
  bool inside = false;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    out += cases.character(i, !inside);
    inside = cases.cased(i);
  }
  return transformed(t, std::move(out));
}

text title_words(const text& t) {
  const both_cases cases(t);
  std::string out;
  bool inside = false;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    std::size_t length = 0;
    const char32_t c = character_at(t.bytes, cases.source_at[i], length);
    const bool breaks = is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
    out += cases.character(i, !inside);
    inside = !breaks;
  }
  return transformed(t, std::move(out));
}

text pad(runtime& rt, const text& t, std::int64_t width, std::string_view fill, int where) {
  const auto n = static_cast<std::int64_t>(count_characters(t.bytes));
  if (width <= n) return t;
  rt.charge_text(static_cast<std::size_t>(width));
  const std::int64_t missing = width - n;
  // str.center puts an odd space on the left if the width is odd.
  const std::int64_t left = where < 0   ? 0
                            : where > 0 ? missing
                                        : missing / 2 + (missing & width & 1);
  text out;
  for (std::int64_t i = 0; i < left; ++i)
    out.append(fill);
  out.append(t);
  for (std::int64_t i = left; i < missing; ++i)
    out.append(fill);
  return out;
}

bool has_case(const text& t, bool upper) {
  const both_cases cases(t);
  bool any = false;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (!cases.cased(i)) continue;
    any = true;
    const auto source = std::string_view(t.bytes).substr(
        cases.source_at[i], cases.source_at[i + 1] - cases.source_at[i]);
    if (source != cases.character(i, upper)) return false;
  }
  return any;
}

std::int64_t character_position(const text& t, std::size_t at) {
  return static_cast<std::int64_t>(count_characters(std::string_view(t.bytes).substr(0, at)));
}

} // namespace twill::models::jinja
