#include "models/text/tokenizer/oniguruma_reader.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "models/text/tokenizer/unicode.hpp"

namespace twill::models::oniguruma {
namespace {

constexpr std::size_t max_written = 1u << 20;
constexpr int max_depth = 100;

bool is_empty(const character_set& set) {
  return set.items.empty() && set.matchers.empty();
}

std::size_t written(const std::vector<character_set>& operands) {
  std::size_t n = 0;
  for (const character_set& set : operands) {
    n += set.items.size();
    for (const std::string& one : set.matchers)
      n += one.size();
  }
  return n;
}

} // namespace

bool is_digit(char c, int base) {
  if (base <= 10) return c >= '0' && c < '0' + base;
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool reader::wrong(const std::string& what) {
  if (fault_.empty()) fault_ = what;
  return false;
}

bool reader::refuse(const std::string& what) {
  return wrong("must not use what twill cannot say to PCRE2 with Oniguruma's meaning, given a " +
               what);
}

bool reader::check_size(std::size_t n_bytes) {
  return n_bytes <= max_written || wrong("must not grow beyond 1 MiB for PCRE2");
}

bool reader::descend() {
  return ++depth_ <= max_depth || wrong("must have at most 100 levels of groups and classes");
}

bool reader::take(std::string_view text) {
  if (!next_is(text)) return false;
  at_ += text.size();
  return true;
}

bool reader::read_property(bool in_class, character_set& out) {
  bool negated = in_[at_ + 1] == 'P';
  at_ += 3;
  if (take("^")) negated = !negated;
  const std::size_t close = in_.find('}', at_);
  if (close == in_.npos) return wrong("must end a property with `}`");
  const std::string_view name = in_.substr(at_, close - at_);
  auto found = property_set(name, in_class);
  if (!found) return refuse("property " + std::string(name.substr(0, 80)));
  at_ = close + 1;
  out = std::move(*found);
  out.negated = out.negated != negated;
  return true;
}

bool reader::read_character(char32_t& out) {
  constexpr std::pair<char, char> controls[] = {{'t', '\t'}, {'n', '\n'}, {'r', '\r'}, {'f', '\f'},
                                                {'a', '\a'}, {'e', 27},   {'v', '\v'}, {'b', '\b'}};
  if (++at_ >= in_.size()) return wrong("must not end with a backslash");
  const char c = in_[at_];
  for (const auto& [letter, value] : controls)
    if (c == letter) return ++at_, out = static_cast<unsigned char>(value), true;
  if (c == 'c' || c == 'C' || c == 'M') return refuse("control or meta character");
  if (c == 'u') return ++at_, read_number(16, 4, 4, out);
  if (is_digit(c, 8)) return read_number(8, 1, 3, out) && is_ascii(out);
  if ((c != 'x' && c != 'o') || (c == 'o' && !in_.substr(at_ + 1).starts_with("{")))
    return out = next_character(in_, at_), true;
  ++at_;
  if (!take("{")) return read_number(16, 0, 2, out) && is_ascii(out);
  if (!read_number(c == 'x' ? 16 : 8, 1, c == 'x' ? 8 : 11, out)) return false;
  return take("}") || refuse("list of several characters in braces");
}

bool reader::read_number(int base, int least, int most, char32_t& out) {
  std::uint64_t value = 0;
  int n = 0;
  for (; n < most && at_ < in_.size() && is_digit(in_[at_], base); ++n, ++at_) {
    const char c = in_[at_];
    const int digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
    value = value * static_cast<unsigned>(base) + static_cast<unsigned>(digit);
  }
  if (n < least) return wrong("must give a character by more digits");
  if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
    return wrong("must give the number of a character");
  out = static_cast<char32_t>(value);
  return true;
}

/// Refuses the expression if `c`, a byte given by its number as in `\xE4`, is not ASCII. Such a
/// byte would be part of a character, and spelling characters by their bytes is not supported.
bool reader::is_ascii(char32_t c) {
  return c < 0x80 || refuse("character given by its bytes");
}

bool reader::read_class(bool ignore_case, character_set& out) {
  if (!descend()) return false;
  const bool negated = take("^");
  std::vector<character_set> operands(1);
  bool is_first = true;
  for (;; is_first = false) {
    if (at_ >= in_.size()) return wrong("must end a class with `]`");
    character_set& set = operands.back();
    if (next_is("]") && !is_first) break;
    if (take("&&")) {
      if (is_empty(set)) return refuse("intersection with nothing");
      operands.emplace_back();
    } else if (!read_item(ignore_case, set)) {
      return false;
    }
    if (!check_size(written(operands))) return false;
  }
  ++at_;
  if (is_empty(operands.back())) return refuse("intersection with nothing");
  if (operands.size() == 1) {
    out = std::move(operands[0]);
  } else if (ignore_case) {
    return refuse("case folding of a class with sets");
  } else {
    std::string all = "(?:";
    for (const character_set& operand : operands) {
      out.n_sets += operand.n_sets;
      out.has_complement = out.has_complement || operand.has_complement;
    }
    for (std::size_t i = 0; i < operands.size(); ++i)
      all += i + 1 < operands.size() ? "(?=" + operands[i].matcher() + ")" : operands[i].matcher();
    out.matchers.push_back(all + ")");
  }
  out.negated = negated;
  ascend();
  return true;
}

/// Reads a character, a range or a set within a class.
bool reader::read_item(bool ignore_case, character_set& out) {
  character_set set;
  bool is_set = true, folds = false;
  if (next_is("[:")) {
    const std::size_t close = in_.find(":]", at_ + 2);
    std::string_view name = in_.substr(at_ + 2, close == in_.npos ? 0 : close - at_ - 2);
    const bool negated = name.starts_with('^');
    auto found = posix_set(name.substr(negated));
    if (!found) return refuse("class that begins with `[:`, unless a POSIX name follows");
    set = std::move(*found);
    set.negated = set.negated != negated;
    at_ = close + 2;
  } else if (take("[")) {
    if (!read_class(ignore_case, set)) return false;
    if (ignore_case && set.negated) return refuse("case folding of a class with sets");
    // In this case Oniguruma 6.9 replaces the complement by all characters outside ASCII.
    if (set.negated && set.n_sets > 1 && set.has_complement)
      return refuse("class within a class that may exclude everything");
    out.n_sets += std::max(1, set.n_sets);
    out.has_complement = out.has_complement || set.negated || set.has_complement;
    return out.add(set), true;
  } else if (next_is("\\p{") || next_is("\\P{")) {
    if (!read_property(true, set)) return false;
  } else if (auto type = next_is("\\") && at_ + 1 < in_.size() ? type_set(in_[at_ + 1], true)
                                                               : std::nullopt) {
    set = std::move(*type);
    out.has_complement = out.has_complement || (in_[at_ + 1] >= 'A' && in_[at_ + 1] <= 'Z');
    folds = std::string_view("dhs").find(in_[at_ + 1]) != in_.npos;
    at_ += 2;
  } else {
    is_set = false;
  }
  if (!is_set) return read_range(ignore_case, out);
  if (next_is("-") && !next_is("-]")) return wrong("must not begin a range in a class with a set");
  if (ignore_case && !folds) return refuse("case folding of a class with sets");
  ++out.n_sets;
  out.has_complement = out.has_complement || set.negated;
  out.add(set);
  return true;
}

bool reader::read_range(bool ignore_case, character_set& out) {
  char32_t first = 0, last = 0;
  if (!read_class_character(first)) return false;
  last = first;
  // A hyphen at either end of a class is literal, and so is a hyphen after a range.
  const bool is_range = next_is("-") && !next_is("-]") && !next_is("-&&");
  if (is_range && first == U'-') return refuse("range in a class that begins with `-`");
  if (is_range) {
    ++at_;
    const bool is_set =
        next_is("[") || next_is("\\p{") || next_is("\\P{") ||
        (next_is("\\") && at_ + 1 < in_.size() && type_set(in_[at_ + 1], true).has_value());
    if (is_set) return refuse("range in a class that ends with a set");
    if (!read_class_character(last)) return false;
    if (last < first) return wrong("must not have an empty range in a class");
  }
  if (ignore_case && !folds_alike(first, last))
    return refuse("case folding of other letters than ASCII's");
  out.items += range(first, last);
  return true;
}

bool reader::read_class_character(char32_t& out) {
  if (at_ >= in_.size()) return wrong("must end a class with `]`");
  if (in_[at_] == '\\') return read_character(out);
  out = next_character(in_, at_);
  return true;
}

} // namespace twill::models::oniguruma
