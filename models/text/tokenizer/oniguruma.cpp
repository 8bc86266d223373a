#include "models/text/tokenizer/oniguruma.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "models/text/detokenizer.hpp"
#include "models/text/tokenizer/oniguruma_reader.hpp"
#include "models/text/tokenizer/unicode.hpp"

namespace twill::models {
namespace {

using oniguruma::character_set;
using oniguruma::is_digit;

constexpr std::size_t max_bytes = 64u << 10;
constexpr int unlimited = -1;

/// The options that apply at a position of the expression.
struct options {
  bool ignore_case = false;
  bool dot_is_any = false; ///< `(?m)` of Ruby
  bool extended = false;   ///< white space and comments are left out
};

/// A part of the expression, translated to the syntax of PCRE2.
struct piece {
  std::string text;
  bool may_be_empty = false;
  bool may_repeat = true; ///< a quantifier may follow
};

struct quantifier {
  int least = 0, most = unlimited;
  const char* suffix = "";
};

/// A recursive-descent parser that writes the PCRE2 expression while it reads the one for
/// Oniguruma. The first error ends the translation: after it, every function returns false.
class translator : oniguruma::reader {
public:
  explicit translator(std::string_view expression) : reader(expression) {}

  result<std::string> translate() {
    piece all;
    if (read_alternatives({}, all) && at_ < in_.size()) wrong("must not have an unmatched `)`");
    if (fault_.empty()) return std::move(all.text);
    std::size_t end = std::min<std::size_t>(in_.size(), 200);
    if (end < in_.size()) end = previous_character(in_, end);
    return failure{errc::unsupported, "expression, offset " + std::to_string(at_) + ", " + fault_ +
                                          ": " + std::string(in_.substr(0, end))};
  }

private:
  // Alternatives end at `)` or at the end of the expression; neither is consumed.
  bool read_alternatives(const options& given, piece& out) {
    if (!descend()) return false;
    out = {};
    for (bool first = true; first || take("|"); first = false) {
      if (!first) out.text += '|', previous_ = 0;
      piece branch;
      if (!read_branch(given, branch)) return false;
      out.may_be_empty = out.may_be_empty || branch.may_be_empty;
      out.text += branch.text;
      if (!check_size(out.text.size())) return false;
    }
    ascend();
    return true;
  }

  bool read_branch(const options& given, piece& out) {
    out.may_be_empty = true;
    while (skip_ignored(given) && at_ < in_.size() && !next_is("|") && !next_is(")")) {
      options changed = given;
      if (bool isolated = false; read_options(changed, isolated), !fault_.empty() || isolated) {
        // Isolated options, such as `(?i)`, apply up to the end of the group, including all its
        // further alternatives.
        piece rest;
        if (!fault_.empty() || !read_alternatives(changed, rest)) return false;
        out.text += group_with(given, changed, rest.text);
        out.may_be_empty = out.may_be_empty && rest.may_be_empty;
        return true;
      }
      piece one;
      if (!read_piece(given, one)) return false;
      out.text += one.text;
      out.may_be_empty = out.may_be_empty && one.may_be_empty;
    }
    return fault_.empty();
  }

  bool skip_ignored(const options& given) {
    while (at_ < in_.size()) {
      if (take("(?#")) {
        for (; at_ < in_.size() && in_[at_] != ')'; ++at_)
          if (in_[at_] == '\\' && at_ + 1 < in_.size()) ++at_;
        if (!take(")")) return wrong("must end a comment with `)`");
      } else if (given.extended && in_[at_] == '#') {
        at_ = std::min(in_.find('\n', at_), in_.size() - 1) + 1;
      } else if (given.extended && std::string_view(" \t\n\r\f").find(in_[at_]) != in_.npos) {
        ++at_;
      } else {
        break;
      }
    }
    return true;
  }

  /// Reads `(?imx-imx)`, which sets `isolated`, or `(?imx-imx:`. Does not consume other groups.
  void read_options(options& changed, bool& isolated) {
    const std::size_t begin = at_;
    if (!take("(?")) return;
    bool on = true;
    for (; at_ < in_.size() && std::string_view("imx-").find(in_[at_]) != in_.npos; ++at_) {
      if (in_[at_] == '-') on = false;
      if (in_[at_] == 'i') changed.ignore_case = on;
      if (in_[at_] == 'm') changed.dot_is_any = on;
      if (in_[at_] == 'x') changed.extended = on;
    }
    isolated = at_ > begin + 2 && take(")");
    if (!isolated) at_ = begin;
  }

  static std::string group_with(const options& given, const options& changed,
                                const std::string& text) {
    return opening(given, changed) + text + ")";
  }

  static std::string opening(const options& given, const options& changed) {
    if (given.ignore_case == changed.ignore_case) return "(?:";
    return changed.ignore_case ? "(?i:" : "(?-i:";
  }

  bool read_piece(const options& given, piece& out) {
    if (!read_atom(given, out)) return false;
    bool repeated = false;
    for (quantifier q; skip_ignored(given) && read_quantifier(q); repeated = true) {
      if (!out.may_repeat) return wrong("must have something before a quantifier that it repeats");
      if (out.may_be_empty && (q.most == unlimited || q.most > 1))
        return refuse("repetition of what may be empty");
      if (repeated) out.text = "(?:" + out.text + ")";
      out.text += q.least == 0 && q.most == unlimited   ? "*"
                  : q.least == 1 && q.most == unlimited ? "+"
                  : q.least == 0 && q.most == 1         ? "?"
                  : q.most == unlimited                 ? "{" + std::to_string(q.least) + ",}"
                  : q.most == q.least
                      ? "{" + std::to_string(q.least) + "}"
                      : "{" + std::to_string(q.least) + "," + std::to_string(q.most) + "}";
      out.text += q.suffix;
      out.may_be_empty = out.may_be_empty || q.least == 0;
      previous_ = 0; // the case folding of several characters ends at a quantifier
      if (!check_size(out.text.size())) return false;
    }
    return fault_.empty();
  }

  /// Does not consume text that is not a quantifier: `{` begins none in `a{`, `a{,}` and `a{x}`.
  bool read_quantifier(quantifier& q) {
    q = {};
    if (take("*")) {
    } else if (take("+")) {
      q.least = 1;
    } else if (take("?")) {
      q.most = 1;
    } else {
      return next_is("{") && read_interval(q);
    }
    q.suffix = take("?") ? "?" : take("+") ? "+" : "";
    return true;
  }

  bool read_interval(quantifier& q) {
    constexpr int too_many = 65536; // PCRE2 allows 65,535
    const std::size_t begin = at_;
    const auto number = [&](int& out) {
      const std::size_t from = ++at_;
      for (out = 0; at_ < in_.size() && is_digit(in_[at_]); ++at_)
        out = std::min(out * 10 + (in_[at_] - '0'), too_many);
      return at_ > from;
    };
    const bool has_least = number(q.least);
    const bool is_range = next_is(",");
    q.most = q.least;
    if (is_range && !number(q.most)) {
      q.most = unlimited;
      if (!has_least) return at_ = begin, false;
    }
    if ((!has_least && !is_range) || !take("}")) return at_ = begin, false;
    if (std::max(q.least, q.most) == too_many)
      return wrong("must repeat nothing more than 65535 times");
    if (q.most != unlimited && q.least > q.most) { // reversed bounds: possessive
      std::swap(q.least, q.most);
      q.suffix = "+";
    } else if (is_range && take("?")) { // after `{n}`, `?` is a new quantifier
      q.suffix = "?";
    }
    return true;
  }

  bool read_atom(const options& given, piece& out) {
    const char c = in_[at_];
    if (c == '(') return read_group(given, out);
    if (c == '[') return ++at_, read_class_atom(given, out);
    if (c == '\\') return read_escape(given, out);
    if (quantifier q; (c == '*' || c == '+' || c == '?' || c == '{') && read_quantifier(q))
      return wrong("must have something before a quantifier that it repeats");
    if (!fault_.empty()) return false;
    if (c == '.') return ++at_, write_matcher(out, given.dot_is_any ? "(?s:.)" : "[^\\n]");
    if (c == '^') return ++at_, write_anchor(out, "(?<![^\\n])(?!\\z)"); // no text is empty
    if (c == '$') return ++at_, write_anchor(out, "(?=\\n|\\z)");
    return write_literal(given, out, next_character(in_, at_));
  }

  bool write_matcher(piece& out, std::string text) {
    out.text = std::move(text);
    previous_ = 0;
    return true;
  }

  bool write_anchor(piece& out, std::string text) {
    out = {std::move(text), true, false};
    return true;
  }

  bool write_literal(const options& given, piece& out, char32_t c) {
    if (given.ignore_case) {
      if (!oniguruma::folds_alike(c, c))
        return refuse("case folding of other letters than ASCII's");
      if (oniguruma::folds_together(previous_, c))
        return refuse("case folding of two letters, as of \"ss\" to U+00DF");
    }
    out.text = oniguruma::literal(c);
    previous_ = c;
    return true;
  }

  bool read_group(const options& given, piece& out) {
    options inner = given;
    std::string open;
    for (const char* kind : {"(?=", "(?!", "(?<=", "(?<!", "(?>", "(?:"})
      if (open.empty() && take(kind)) open = kind;
    if (open.empty() && !next_is("(?")) { // captures are not used
      ++at_;
      open = "(?:";
    }
    if (open.empty()) {
      if (!read_name_or_options(inner)) return false;
      open = opening(given, inner);
    }
    const bool looks = open.find_first_of("=!") != open.npos;
    n_looks_ += looks;
    piece body;
    if (!read_alternatives(inner, body)) return false;
    n_looks_ -= looks;
    if (!take(")")) return wrong("must end a group with `)`");
    out = {open + body.text + ")", looks || body.may_be_empty, !looks};
    return true;
  }

  /// Reads `(?<name>`, `(?'name'` or `(?imx-imx:`.
  bool read_name_or_options(options& inner) {
    const std::size_t begin = at_;
    for (const auto& [mark, end] : {std::pair("(?<", '>'), std::pair("(?'", '\'')})
      if (take(mark)) {
        const std::size_t close = in_.find(end, at_);
        const bool named = close != in_.npos && close > at_ && !is_digit(in_[at_]) &&
                           in_.substr(at_, close - at_).find_first_of("()[]\\|") == in_.npos;
        if (!named) return wrong("must name a group between its marks");
        at_ = close + 1;
        return true;
      }
    at_ += 2;
    bool on = true;
    for (; at_ < in_.size() && in_[at_] != ':'; ++at_) {
      const char c = in_[at_];
      if (c == '-')
        on = false;
      else if (c == 'i')
        inner.ignore_case = on;
      else if (c == 'm')
        inner.dot_is_any = on;
      else if (c == 'x')
        inner.extended = on;
      else
        return at_ = begin, refuse("group of this kind");
    }
    return take(":") || wrong("must end a group with `)`");
  }

  bool read_escape(const options& given, piece& out) {
    if (at_ + 1 >= in_.size()) return wrong("must not end with a backslash");
    const char c = in_[at_ + 1];
    if (auto set = oniguruma::type_set(c, false)) return at_ += 2, write_set(given, out, *set);
    if ((c == 'p' || c == 'P') && in_.substr(at_ + 2).starts_with("{")) {
      character_set set;
      return read_property(false, set) && write_set(given, out, set);
    }
    const auto word = [](const char* look) {
      return look + oniguruma::type_set('w', false)->matcher() + ")";
    };
    const std::string after = word("(?<="), no_after = word("(?<!"), before = word("(?="),
                      no_before = word("(?!");
    switch (c) {
    case 'b':
      return at_ += 2, write_anchor(out, "(?:" + after + no_before + "|" + no_after + before + ")");
    case 'B':
      return at_ += 2, write_anchor(out, "(?:" + after + before + "|" + no_after + no_before + ")");
    case 'A':
      return at_ += 2, write_anchor(out, "\\A");
    case 'Z':
      return at_ += 2, write_anchor(out, "(?=\\n?\\z)");
    case 'z':
      return at_ += 2, write_anchor(out, "\\z");
    case 'K':
      if (n_looks_ > 0) return refuse("`\\K` in a group that looks ahead or behind");
      return at_ += 2, write_anchor(out, "\\K");
    case 'R':
      return at_ += 2, write_matcher(out, "(?>\\r\\n|[\\n-\\r\\x{85}\\x{2028}\\x{2029}])");
    case 'N':
      return at_ += 2, write_matcher(out, "[^\\n]");
    case 'O':
      return at_ += 2, write_matcher(out, "(?s:.)");
    case 'X':
    case 'y':
    case 'Y':
    case 'G':
    case 'g':
    case 'k':
      return refuse(std::string("`\\") + c + "`");
    default:
      if (c >= '1' && c <= '9') return refuse("back reference");
      char32_t value = 0;
      return read_character(value) && write_literal(given, out, value);
    }
  }

  /// Outside of brackets, Oniguruma does not fold the case of a set such as `\p{Lu}`, even if the
  /// option `i` is on. PCRE2 may fold it, so the option is switched off for the set.
  bool write_set(const options& given, piece& out, const character_set& set) {
    return write_matcher(out, given.ignore_case ? "(?-i:" + set.matcher() + ")" : set.matcher());
  }

  bool read_class_atom(const options& given, piece& out) {
    character_set set;
    if (!read_class(given.ignore_case, set)) return false;
    const bool is_letter = set.items.size() == 1 && set.matchers.empty() && !set.negated;
    if (given.ignore_case && is_letter)
      return write_literal(given, out, static_cast<unsigned char>(set.items[0]));
    return write_matcher(out, set.matcher());
  }

  int n_looks_ = 0;       ///< number of enclosing groups that look ahead or behind
  char32_t previous_ = 0; ///< the literal before this position; 0 if there is none
};

} // namespace

result<std::string> oniguruma_to_pcre2(std::string_view expression) {
  if (expression.size() > max_bytes)
    return failure{errc::unsupported, "expression, must have at most 65536 bytes, given " +
                                          std::to_string(expression.size())};
  if (!is_utf8(expression)) return failure{errc::unsupported, "expression, must be valid UTF-8"};
  return translator(expression).translate();
}

} // namespace twill::models
