#include "models/text/grammar/schema/regex_syntax.hpp"

#include <cstdint>
#include <string>
#include <utility>

#include "models/text/grammar/errc.hpp"
#include "models/text/grammar/schema/utf8.hpp"

namespace twill::models::grammar {
namespace {

using node_kind = regex_node_kind;

const code_points digits('0', '9');
const code_points word({{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}});
const code_points spaces({{9, 13},
                          {' ', ' '},
                          {0xa0, 0xa0},
                          {0x1680, 0x1680},
                          {0x2000, 0x200a},
                          {0x2028, 0x2029},
                          {0x202f, 0x202f},
                          {0x205f, 0x205f},
                          {0x3000, 0x3000},
                          {0xfeff, 0xfeff}});
const code_points line_ends({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}});
constexpr int max_group_depth = 100;
constexpr int max_count = 100000;

class regex_parser {
public:
  explicit regex_parser(std::string_view pattern)
      : text_(pattern), chars_(code_points_of(pattern)) {}

  regex_node parse() {
    auto node = choice(0);
    if (at_ < chars_.size()) fail(errc::bad_grammar, "has a `)` too many");
    return node;
  }

private:
  [[noreturn]] void fail(errc code, const std::string& what) const {
    refuse(code, "the regular expression " + std::string(text_) + " " + what);
  }

  bool ends() const { return at_ >= chars_.size(); }
  std::uint32_t peek() const { return ends() ? 0 : chars_[at_]; }
  bool take(std::uint32_t c) {
    if (ends() || chars_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool take(std::string_view ascii) {
    if (chars_.size() - at_ < ascii.size()) return false;
    for (std::size_t i = 0; i < ascii.size(); ++i)
      if (chars_[at_ + i] != static_cast<unsigned char>(ascii[i])) return false;
    at_ += ascii.size();
    return true;
  }

  regex_node choice(int depth) {
    if (depth > max_group_depth) fail(errc::unsupported, "is nested too deeply");
    regex_node out{node_kind::choice, {}, {}, 0, -1, false};
    do
      out.parts.push_back(sequence(depth));
    while (take('|'));
    if (out.parts.size() > 1) return out;
    regex_node only = std::move(out.parts.front());
    return only;
  }

  regex_node sequence(int depth) {
    regex_node out{node_kind::sequence, {}, {}, 0, -1, false};
    while (!ends() && peek() != '|' && peek() != ')')
      out.parts.push_back(repeated(atom(depth)));
    return out;
  }

  regex_node repeated(regex_node node) {
    int min = 1, max = 1;
    if (take('*')) {
      min = 0, max = -1;
    } else if (take('+')) {
      max = -1;
    } else if (take('?')) {
      min = 0;
    } else if (!(peek() == '{' && braces(min, max))) {
      return node;
    }
    if (!take('?') && peek() == '+') fail(errc::unsupported, "uses a possessive quantifier");
    if (node.kind == node_kind::begin || node.kind == node_kind::end ||
        node.kind == node_kind::lookahead)
      fail(errc::unsupported, "repeats an assertion");
    if (max >= 0 && max < min) fail(errc::bad_grammar, "has a range {n,m} with n > m");
    regex_node out{node_kind::repeat, {}, {}, min, max, false};
    out.parts.push_back(std::move(node));
    return repeated(std::move(out));
  }

  /// Reads {n}, {n,} or {n,m}. Any other text in braces is literal.
  bool braces(int& min, int& max) {
    const auto start = at_++;
    const auto number = [this](int& out) {
      const auto from = at_;
      std::int64_t n = 0;
      while (!ends() && digits.contains(peek())) {
        n = n * 10 + (peek() - '0');
        if (n > max_count) fail(errc::too_large, "repeats more than 100000 times");
        ++at_;
      }
      out = static_cast<int>(n);
      return at_ > from;
    };
    if (number(min)) {
      max = min;
      if (take(',') && !number(max)) max = -1;
      if (take('}')) return true;
    }
    at_ = start;
    min = max = 1;
    return false;
  }

  regex_node atom(int depth) {
    const auto c = chars_[at_++];
    switch (c) {
    case '(':
      return group(depth);
    case '[':
      return one(char_class());
    case '.':
      return one(~line_ends);
    case '^':
      return {node_kind::begin, {}, {}, 0, -1, false};
    case '$':
      return {node_kind::end, {}, {}, 0, -1, false};
    case '\\':
      return one(escape(false));
    case '*':
    case '+':
    case '?':
      fail(errc::bad_grammar, "repeats nothing");
    default:
      return one({c, c});
    }
  }

  regex_node group(int depth) {
    regex_node out;
    if (take("?=") || take("?!")) {
      out.kind = node_kind::lookahead;
      out.negative = chars_[at_ - 1] == '!';
    } else if (take("?<=") || take("?<!")) {
      fail(errc::unsupported, "uses lookbehind, which twill does not enforce");
    } else if (take("?<") || take("?P<")) {
      while (!ends() && !take('>'))
        ++at_;
    } else if (!take("?:") && peek() == '?') {
      fail(errc::unsupported, "uses a group (?...) that twill does not know");
    }
    auto inner = choice(depth + 1);
    if (!take(')')) fail(errc::bad_grammar, "has a `(` without its `)`");
    if (out.kind != node_kind::lookahead) return inner;
    out.parts.push_back(std::move(inner));
    return out;
  }

  static regex_node one(code_points set) {
    return {node_kind::chars, std::move(set), {}, 0, -1, false};
  }

  code_points char_class() {
    const bool negative = take('^');
    code_points out;
    while (true) {
      if (ends()) fail(errc::bad_grammar, "has a `[` without its `]`");
      if (take(']')) break;
      auto low = class_atom();
      if (peek() == '-' && at_ + 1 < chars_.size() && chars_[at_ + 1] != ']' && is_single(low)) {
        const auto dash = at_++;
        const auto high = class_atom();
        if (is_single(high)) {
          const auto first = low.ranges()[0].first, last = high.ranges()[0].last;
          if (first > last)
            fail(errc::bad_grammar, "has a range whose ends are the wrong way round");
          out = out | code_points(first, last);
          continue;
        }
        at_ = dash; // in `[a-\d]` the dash is literal
      }
      out = out | low;
    }
    return negative ? ~out : out;
  }

  static bool is_single(const code_points& set) {
    return set.ranges().size() == 1 && set.ranges()[0].first == set.ranges()[0].last;
  }

  code_points class_atom() {
    const auto c = chars_[at_++];
    return c == '\\' ? escape(true) : code_points(c, c);
  }

  std::uint32_t hex(int n_digits) {
    std::uint32_t out = 0;
    for (int i = 0; i < n_digits; ++i) {
      const auto c = peek();
      const bool is_digit = digits.contains(c), is_letter = (c | 32) >= 'a' && (c | 32) <= 'f';
      if (!is_digit && !is_letter) fail(errc::bad_grammar, "has a \\x or \\u without its digits");
      out = out * 16 + (is_digit ? c - '0' : (c | 32) - 'a' + 10);
      ++at_;
    }
    return out;
  }

  code_points unicode_escape() {
    std::uint32_t c = 0;
    if (take('{')) {
      while (!take('}')) {
        c = c * 16 + hex(1);
        if (c > last_code_point) fail(errc::bad_grammar, "names a code point above U+10FFFF");
      }
    } else {
      c = hex(4);
      if (c >= 0xd800 && c < 0xdc00 && take("\\u"))
        c = 0x10000 + ((c - 0xd800) << 10) + (hex(4) - 0xdc00);
    }
    return {c, c};
  }

  code_points escape(bool in_class) {
    if (ends()) fail(errc::bad_grammar, "ends in a backslash");
    const auto c = chars_[at_++];
    switch (c) {
    case 'd':
      return digits;
    case 'D':
      return ~digits;
    case 'w':
      return word;
    case 'W':
      return ~word;
    case 's':
      return spaces;
    case 'S':
      return ~spaces;
    case 'n':
      return {'\n', '\n'};
    case 'r':
      return {'\r', '\r'};
    case 't':
      return {'\t', '\t'};
    case 'f':
      return {'\f', '\f'};
    case 'v':
      return {'\v', '\v'};
    case '0':
      return {0, 0};
    case 'x': {
      const auto x = hex(2);
      return {x, x};
    }
    case 'u':
      return unicode_escape();
    case 'c': {
      const auto letter = peek() & 31;
      ++at_;
      return {letter, letter};
    }
    case 'p':
    case 'P':
      return property(c == 'P');
    case 'b':
      if (in_class) return {'\b', '\b'};
      [[fallthrough]];
    case 'B':
      fail(errc::unsupported, "uses \\b, which twill does not enforce");
    // \A, \Z and \z are anchors of Python and PCRE, which occur in patterns although ECMA-262 has
    // no such anchors.
    case 'A':
    case 'Z':
    case 'z':
      fail(errc::unsupported, "uses \\A or \\Z; write ^ or $");
    case 'k':
      fail(errc::unsupported, "uses a back-reference, which no grammar can enforce");
    default:
      if (c >= '1' && c <= '9' && !in_class)
        fail(errc::unsupported, "uses a back-reference, which no grammar can enforce");
      return {c, c};
    }
  }

  code_points property(bool negative) {
    std::string name;
    if (!take('{')) fail(errc::unsupported, "uses \\p without a name in braces");
    while (!ends() && !take('}'))
      name += static_cast<char>(chars_[at_++]);
    const auto set = code_points_of_category(name);
    if (set.empty()) fail(errc::unsupported, "uses \\p{" + name + "}, which twill does not know");
    return negative ? ~set : set;
  }

  std::string_view text_;
  std::vector<std::uint32_t> chars_;
  std::size_t at_ = 0;
};

} // namespace

regex_node parse_regex(std::string_view pattern) {
  return regex_parser(pattern).parse();
}

} // namespace twill::models::grammar
