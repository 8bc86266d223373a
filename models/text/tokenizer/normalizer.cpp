#include "models/text/tokenizer/normalizer.hpp"

#include <cstdint>
#include <cstring>

#include "models/text/detokenizer.hpp"

namespace twill::models {
namespace {

/// Returns the greatest size of a normalized text: 32 bytes for each byte before, and 65536 more.
std::size_t size_limit(std::size_t before) {
  return 32 * before + 65536;
}

failure grows_too_much() {
  return {errc::bad_text, "text, must not grow out of hand when it is normalized"};
}

} // namespace

result<std::string> normalizer::apply(std::string_view text) const {
  std::string changed(text);
  for (const normalize_rule& rule : rules_) {
    auto next = rule(std::move(changed));
    if (!next.ok()) return next;
    changed = std::move(next).value();
    if (changed.size() > size_limit(text.size())) return grows_too_much();
  }
  return changed;
}

normalize_rule to_normal_form(normal_form form) {
  return [form](std::string text) -> result<std::string> { return normalize(text, form); };
}

normalize_rule to_lowercase() {
  return [](std::string text) -> result<std::string> { return lowercase(text); };
}

normalize_rule strip_space(bool left, bool right) {
  return [left, right](std::string text) -> result<std::string> {
    std::size_t end = text.size();
    for (std::size_t at = end; right && at > 0;) {
      std::size_t before = at = previous_character(text, at);
      if (!is_white_space(next_character(text, before))) break;
      end = at;
    }
    std::size_t begin = 0;
    for (std::size_t at = 0; left && at < end; begin = at)
      if (!is_white_space(next_character(text, at))) break;
    return text.substr(begin, end - begin);
  };
}

normalize_rule strip_marks() {
  return [](std::string text) -> result<std::string> {
    std::string out;
    for (std::size_t at = 0, next = 0; at < text.size(); at = next) {
      next = at;
      if (!is_mark(next_character(text, next))) out.append(text, at, next - at);
    }
    return out;
  };
}

normalize_rule prepend(std::string mark) {
  return [mark = std::move(mark)](std::string text) -> result<std::string> {
    if (!text.empty()) text.insert(0, mark);
    return text;
  };
}

normalize_rule replace_text(std::string what, std::string by) {
  return [what = std::move(what), by = std::move(by)](std::string text) -> result<std::string> {
    if (what.empty()) return text;
    const std::size_t limit = size_limit(text.size());
    std::string out;
    out.reserve(text.size() + text.size() / 4);
    std::size_t from = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, from)) {
      out.append(text, from, at - from).append(by);
      from = at + what.size();
      if (out.size() > limit) return grows_too_much();
    }
    return out.append(text, from);
  };
}

normalize_rule replace_matches(std::shared_ptr<const regex> what, std::string by) {
  return [what = std::move(what), by = std::move(by)](std::string text) -> result<std::string> {
    const std::size_t limit = size_limit(text.size());
    match_list matches;
    regex::finder finder(*what);
    if (auto found = finder.find_all(text, matches); !found.ok()) return found.error();
    std::string out;
    std::size_t from = 0;
    for (const auto& [begin, end] : matches) {
      out.append(text, from, begin - from).append(by);
      from = end;
      if (out.size() > limit) return grows_too_much();
    }
    return out.append(text, from);
  };
}

normalize_rule nmt_rules() {
  return [](std::string text) -> result<std::string> {
    std::string out;
    for (std::size_t at = 0, next = 0; at < text.size(); at = next) {
      next = at;
      const char32_t c = next_character(text, next);
      const bool vanishes = (c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) ||
                            c == 0x7F || c == 0x8F || c == 0x9F;
      if (vanishes) continue;
      const bool is_space = c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 ||
                            (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 ||
                            c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
      if (is_space)
        out.push_back(' ');
      else
        out.append(text, at, next - at);
    }
    return out;
  };
}

namespace {

/// A trie as a double array (Aoe 1989), in the format of darts-clone. The array comes from a file,
/// so each index is checked before use.
class compiled_map {
public:
  compiled_map(std::vector<std::uint32_t> units, std::string texts)
      : units_(std::move(units)), texts_(std::move(texts)) {}

  struct found {
    std::size_t length = 0; ///< bytes of the key; 0 when none matches
    std::uint32_t value = 0;
  };

  /// Returns the longest key with which `text` begins.
  found longest(std::string_view text) const {
    found best;
    std::size_t node = 0;
    std::uint32_t unit = units_[0];
    node ^= offset(unit);
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto byte = static_cast<std::uint8_t>(text[i]);
      node ^= byte;
      if (node >= units_.size()) break;
      unit = units_[node];
      if ((unit & 0x800000FFu) != byte) break;
      node ^= offset(unit);
      if ((unit >> 8 & 1) == 0) continue;
      if (node >= units_.size()) break;
      best = {i + 1, units_[node] & 0x7FFFFFFFu};
    }
    return best;
  }

  /// Returns the replacement at offset `value`, which ends at a NUL.
  std::string_view text_at(std::uint32_t value) const {
    if (value >= texts_.size()) return {};
    return std::string_view(texts_).substr(value, std::strlen(texts_.c_str() + value));
  }

private:
  static std::size_t offset(std::uint32_t unit) {
    return static_cast<std::size_t>(unit >> 10) << ((unit & (1u << 9)) >> 6);
  }

  std::vector<std::uint32_t> units_;
  std::string texts_;
};

} // namespace

result<normalize_rule> compiled_rules(std::string charsmap) {
  std::uint32_t n_bytes = 0;
  if (charsmap.size() >= 4) std::memcpy(&n_bytes, charsmap.data(), 4);
  if (n_bytes < 4 || n_bytes % 4 != 0 || n_bytes > charsmap.size() - 4)
    return failure{errc::bad_format, "precompiled_charsmap, must hold a table of whole units"};
  std::vector<std::uint32_t> units(n_bytes / 4);
  std::memcpy(units.data(), charsmap.data() + 4, n_bytes);
  std::string texts = charsmap.substr(4 + n_bytes);
  if (!is_utf8(texts))
    return failure{errc::bad_format, "precompiled_charsmap, must hold replacements in UTF-8"};
  auto map = std::make_shared<const compiled_map>(std::move(units), std::move(texts));
  return normalize_rule([map](std::string text) -> result<std::string> {
    const std::size_t limit = size_limit(text.size());
    const std::string_view whole = text;
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < whole.size();) {
      const auto rule = map->longest(whole.substr(at));
      // A key that ends within a character would break the text, so such a match is not used.
      const std::size_t next = at + rule.length;
      const bool is_whole = next >= whole.size() || (whole[next] & 0xC0) != 0x80;
      const std::string_view by = map->text_at(rule.value);
      if (rule.length > 0 && is_whole && is_utf8(by)) {
        out.append(by);
        at = next;
      } else {
        const std::size_t length = character_length(whole[at]);
        out.append(whole.substr(at, length));
        at += length;
      }
      if (out.size() > limit) return grows_too_much();
    }
    return out;
  });
}

} // namespace twill::models
