#include "models/text/grammar/gbnf.hpp"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "models/text/grammar/errc.hpp"
#include "models/text/grammar/schema/rules.hpp"
#include "models/text/grammar/schema/utf8.hpp"

namespace twill::models::grammar {
namespace {

constexpr int max_depth = 200; ///< greatest nesting of parentheses
constexpr int max_repeats = 1'000'000;

const code_points any_character = code_points::all() - code_points(0xd800, 0xdfff);

/// Thrown and caught in this file only: the text is not GBNF.
struct not_gbnf {};

bool is_word(std::uint32_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

/// Parses GBNF as llama.cpp does: a line end separates rules, unless it stands in parentheses or
/// after `::=` or `|`.
class gbnf_parser {
public:
  explicit gbnf_parser(std::string_view text) : text_(code_points_of(text)) {}

  std::string ebnf() {
    skip_space(true);
    while (!at_end())
      read_rule();
    for (const auto& [name, rule] : rules_)
      if (!rule.defined) throw not_gbnf();
    const auto root = rules_.find("root");
    if (root == rules_.end()) throw not_gbnf();
    auto out = into_.ebnf(root->second.id);
    if (!out)
      refuse(errc::unsatisfiable, "no text satisfies the grammar: one of its rules never "
                                  "ends; give it a case without itself");
    return std::move(*out);
  }

private:
  struct named_rule {
    int id = -1;
    bool defined = false;
  };

  bool at_end() const { return at_ >= text_.size(); }
  std::uint32_t peek() const { return at_end() ? 0 : text_[at_]; }
  bool take(std::uint32_t c) {
    if (at_end() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(std::uint32_t c) {
    if (!take(c)) throw not_gbnf();
  }

  /// Skips white space and comments.
  void skip_space(bool over_lines) {
    for (; !at_end(); ++at_) {
      const auto c = text_[at_];
      if (c == '#')
        while (at_ + 1 < text_.size() && text_[at_ + 1] != '\n' && text_[at_ + 1] != '\r')
          ++at_;
      else if (c != ' ' && c != '\t' && !(over_lines && (c == '\n' || c == '\r')))
        return;
    }
  }

  std::string read_name() {
    std::string out;
    for (; is_word(peek()); ++at_)
      out += static_cast<char>(peek());
    if (out.empty()) throw not_gbnf();
    return out;
  }

  named_rule& rule_named(const std::string& name) {
    auto& rule = rules_[name];
    if (rule.id < 0) rule.id = into_.add(name);
    return rule;
  }

  void read_rule() {
    const auto name = read_name();
    skip_space(false);
    for (const char c : {':', ':', '='})
      expect(static_cast<std::uint32_t>(c));
    skip_space(true);
    auto body = read_choices(0);
    auto& rule = rule_named(name);
    if (std::exchange(rule.defined, true)) throw not_gbnf();
    into_.define(rule.id, std::move(body));
    if (!at_end() && !take('\n') && !take('\r')) throw not_gbnf();
    skip_space(true);
  }

  expression read_choices(int depth) {
    if (depth > max_depth)
      refuse(errc::bad_grammar,
             "the grammar's parentheses nest more than " + std::to_string(max_depth) + " deep");
    std::vector<expression> ways{read_sequence(depth)};
    while (take('|')) {
      skip_space(true);
      ways.push_back(read_sequence(depth));
    }
    return choice_of(std::move(ways));
  }

  expression read_sequence(int depth) {
    const bool nested = depth > 0;
    std::vector<expression> parts;
    while (true) {
      if (take('"')) {
        parts.push_back(read_text());
      } else if (take('[')) {
        parts.push_back(read_class());
      } else if (take('.')) {
        parts.push_back(one_of(any_character));
      } else if (take('(')) {
        skip_space(true);
        parts.push_back(read_choices(depth + 1));
        expect(')');
      } else if (is_word(peek())) {
        parts.push_back(into_.reference(rule_named(read_name()).id));
      } else if (const auto bounds = read_repetition(nested)) {
        if (parts.empty()) throw not_gbnf();
        parts.back() = repeat_of(std::move(parts.back()), bounds->first, bounds->second);
      } else {
        return sequence_of(std::move(parts));
      }
      skip_space(nested);
    }
  }

  std::optional<std::pair<int, int>> read_repetition(bool nested) {
    if (take('*')) return std::pair{0, -1};
    if (take('+')) return std::pair{1, -1};
    if (take('?')) return std::pair{0, 1};
    if (!take('{')) return std::nullopt;
    skip_space(nested);
    const auto min = read_count();
    skip_space(nested);
    if (take('}')) {
      if (!min) throw not_gbnf();
      return std::pair{*min, *min};
    }
    expect(',');
    skip_space(nested);
    const auto max = read_count();
    skip_space(nested);
    expect('}');
    if ((!min && !max) || (max && *max < min.value_or(0))) throw not_gbnf();
    return std::pair{min.value_or(0), max.value_or(-1)};
  }

  std::optional<int> read_count() {
    if (peek() < '0' || peek() > '9') return std::nullopt;
    int n = 0;
    for (; peek() >= '0' && peek() <= '9'; ++at_) {
      n = n * 10 + static_cast<int>(peek() - '0');
      if (n > max_repeats)
        refuse(errc::too_large,
               "the grammar repeats a part more than " + std::to_string(max_repeats) + " times");
    }
    return n;
  }

  expression read_text() {
    std::string out;
    while (!take('"'))
      append_utf8(out, read_character());
    return text_of(std::move(out));
  }

  expression read_class() {
    const bool negated = take('^');
    std::vector<code_point_range> ranges;
    while (!take(']')) {
      const auto first = read_character();
      auto last = first;
      if (peek() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        last = read_character();
      }
      if (last < first) throw not_gbnf();
      ranges.push_back({first, last});
    }
    if (ranges.empty()) throw not_gbnf();
    const code_points set(std::move(ranges));
    return one_of(negated ? any_character - set : set & any_character);
  }

  std::uint32_t read_character() {
    if (at_end()) throw not_gbnf();
    const auto c = text_[at_++];
    if (c != '\\') return c;
    if (at_end()) throw not_gbnf();
    switch (const auto letter = text_[at_++]) {
    case 'x':
      return read_hex(2);
    case 'u':
      return read_hex(4);
    case 'U':
      return read_hex(8);
    case 't':
      return '\t';
    case 'r':
      return '\r';
    case 'n':
      return '\n';
    case '\\':
    case '"':
    case '[':
    case ']':
      return letter;
    default:
      throw not_gbnf();
    }
  }

  std::uint32_t read_hex(int n_digits) {
    std::uint32_t out = 0;
    for (int i = 0; i < n_digits; ++i, ++at_) {
      const auto c = peek();
      const auto digit = c >= '0' && c <= '9'   ? c - '0'
                         : c >= 'a' && c <= 'f' ? c - 'a' + 10
                         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                : 16;
      if (digit == 16) throw not_gbnf();
      out = out * 16 + digit;
    }
    if (!any_character.contains(out)) throw not_gbnf();
    return out;
  }

  const std::vector<std::uint32_t> text_;
  std::size_t at_ = 0;
  rules into_;
  std::map<std::string, named_rule> rules_;
};

} // namespace

std::optional<std::string> ebnf_of_gbnf(std::string_view text) {
  try {
    return gbnf_parser(text).ebnf();
  } catch (const not_gbnf&) {
    return std::nullopt;
  }
}

} // namespace twill::models::grammar
