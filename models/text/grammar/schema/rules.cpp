#include "models/text/grammar/schema/rules.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "models/text/grammar/errc.hpp"
#include "models/text/grammar/schema/utf8.hpp"

namespace twill::models::grammar {
namespace {

/// Compiling more rules than this takes longer than any useful time limit.
constexpr std::size_t max_rules = 15000;

void print_code_point(std::string& out, std::uint32_t c) {
  char text[16];
  if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'))
    out += static_cast<char>(c);
  else if (c < 0x10000)
    std::snprintf(text, sizeof text, "\\u%04X", c), out += text;
  else
    std::snprintf(text, sizeof text, "\\U%08X", c), out += text;
}

/// Splits the set into parts whose code points have equal numbers of bytes in UTF-8. If one range
/// spans several lengths, XGrammar's automata accept overlong encodings.
std::vector<code_points> by_width(const code_points& set) {
  std::vector<code_points> out;
  std::uint32_t first = 0;
  for (const std::uint32_t last : {0x7fu, 0x7ffu, 0xffffu, last_code_point}) {
    auto part = set & code_points(first, last);
    if (!part.empty()) out.push_back(std::move(part));
    first = last + 1;
  }
  return out;
}

void print_class(std::string& out, const code_points& set) {
  out += '[';
  for (const auto& range : set.ranges()) {
    print_code_point(out, range.first);
    if (range.last == range.first) continue;
    out += '-';
    print_code_point(out, range.last);
  }
  out += ']';
}

void print_text(std::string& out, const std::string& text) {
  out += '"';
  for (const auto c : code_points_of(text)) {
    if (c == '"' || c == '\\')
      out += '\\', out += static_cast<char>(c);
    else if (c < 0x20 || c == 0x7f)
      print_code_point(out, c);
    else
      append_utf8(out, c);
  }
  out += '"';
}

bool can_end(const expression& e, const std::vector<bool>& rules_end) {
  switch (e.kind) {
  case expression_kind::text:
  case expression_kind::regex:
    return true;
  case expression_kind::chars:
    return !e.chars.empty();
  case expression_kind::sequence:
    return std::all_of(e.parts.begin(), e.parts.end(),
                       [&](const auto& part) { return can_end(part, rules_end); });
  case expression_kind::choice:
    return std::any_of(e.parts.begin(), e.parts.end(),
                       [&](const auto& part) { return can_end(part, rules_end); });
  case expression_kind::repeat:
    return e.min == 0 || can_end(e.parts[0], rules_end);
  case expression_kind::rule:
    return rules_end[static_cast<std::size_t>(e.rule)];
  case expression_kind::never:
    return false;
  }
  return false;
}

class printer {
public:
  printer(const std::vector<bool>& rules_end, std::vector<std::string> names)
      : rules_end_(rules_end), names_(std::move(names)) {}

  /// Prints `e`, which at least one finite text must match. With `tight`, the printed text must be
  /// a single grammar element, so parentheses are added where needed.
  void print(std::string& out, const expression& e, bool tight) {
    switch (e.kind) {
    case expression_kind::text:
      print_text(out, e.text);
      return;
    case expression_kind::regex:
      out += "Regex(";
      print_text(out, e.text);
      out += ')';
      return;
    case expression_kind::chars:
      print_class(out, e.chars);
      return;
    case expression_kind::rule:
      used.push_back(e.rule);
      out += names_[static_cast<std::size_t>(e.rule)];
      return;
    case expression_kind::sequence: {
      if (e.parts.empty()) {
        out += "\"\"";
        return;
      }
      if (tight) out += '(';
      for (std::size_t i = 0; i < e.parts.size(); ++i) {
        if (i > 0) out += ' ';
        print(out, e.parts[i], true);
      }
      if (tight) out += ')';
      return;
    }
    case expression_kind::choice: {
      std::vector<const expression*> parts;
      for (const auto& part : e.parts)
        if (can_end(part, rules_end_)) parts.push_back(&part);
      if (parts.size() == 1) return print(out, *parts[0], tight);
      if (tight) out += '(';
      for (std::size_t i = 0; i < parts.size(); ++i) {
        if (i > 0) out += " | ";
        print(out, *parts[i], parts[i]->kind == expression_kind::choice);
      }
      if (tight) out += ')';
      return;
    }
    case expression_kind::repeat: {
      if (!can_end(e.parts[0], rules_end_) || e.max == 0) {
        out += "\"\"";
        return;
      }
      if (e.parts[0].kind == expression_kind::repeat) out += '(';
      print(out, e.parts[0], true);
      if (e.parts[0].kind == expression_kind::repeat) out += ')';
      if (e.min == 0 && e.max < 0)
        out += '*';
      else if (e.min == 1 && e.max < 0)
        out += '+';
      else if (e.min == 0 && e.max == 1)
        out += '?';
      else
        out += "{" + std::to_string(e.min) + "," + (e.max < 0 ? "" : std::to_string(e.max)) + "}";
      return;
    }
    case expression_kind::never:
      return;
    }
  }

  std::vector<int> used;

private:
  const std::vector<bool>& rules_end_;
  std::vector<std::string> names_;
};

} // namespace

expression text_of(std::string text) {
  expression e;
  if (text.empty()) return e;
  e.kind = expression_kind::text;
  e.text = std::move(text);
  return e;
}

expression one_of(code_points set) {
  expression e;
  e.kind = set.empty() ? expression_kind::never : expression_kind::chars;
  e.chars = std::move(set);
  return e;
}

expression one_of(std::string_view ascii) {
  std::vector<code_point_range> ranges;
  for (const char c : ascii)
    ranges.push_back({static_cast<std::uint32_t>(c), static_cast<std::uint32_t>(c)});
  return one_of(code_points(std::move(ranges)));
}

expression sequence_of(std::vector<expression> parts) {
  if (parts.size() == 1) return std::move(parts.front());
  expression e;
  for (auto& part : parts) {
    if (part.kind == expression_kind::never) return never();
    if (part.kind != expression_kind::sequence) {
      // Adjacent texts are joined into one.
      if (part.kind == expression_kind::text && !e.parts.empty() &&
          e.parts.back().kind == expression_kind::text)
        e.parts.back().text += part.text;
      else
        e.parts.push_back(std::move(part));
      continue;
    }
    for (auto& inner : part.parts)
      e.parts.push_back(std::move(inner));
  }
  if (e.parts.size() == 1) {
    expression only = std::move(e.parts.front());
    return only;
  }
  return e;
}

expression choice_of(std::vector<expression> parts) {
  expression e;
  e.kind = expression_kind::choice;
  for (auto& part : parts)
    if (part.kind != expression_kind::never) e.parts.push_back(std::move(part));
  if (e.parts.empty()) return never();
  if (e.parts.size() == 1) {
    expression only = std::move(e.parts.front());
    return only;
  }
  return e;
}

expression repeat_of(expression part, int min, int max) {
  if (max == 0) return {};
  if (part.kind == expression_kind::never) return min == 0 ? expression{} : never();
  if (min == 1 && max == 1) return part;
  expression e;
  e.kind = expression_kind::repeat;
  e.min = min;
  e.max = max;
  e.parts.push_back(std::move(part));
  return e;
}

expression regex_of(std::string pattern) {
  expression e;
  e.kind = expression_kind::regex;
  e.text = std::move(pattern);
  return e;
}

std::string regex_class(const code_points& set) {
  const auto print = [](std::string& out, std::uint32_t c) {
    char text[16];
    if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'))
      out += static_cast<char>(c);
    else if (c < 0x80)
      std::snprintf(text, sizeof text, "\\x%02x", c), out += text;
    else
      std::snprintf(text, sizeof text, "\\u{%x}", c), out += text;
  };
  std::string out;
  for (const auto& part : by_width(set)) {
    out += out.empty() ? "[" : "|[";
    for (const auto& range : part.ranges()) {
      print(out, range.first);
      if (range.last == range.first) continue;
      out += '-';
      print(out, range.last);
    }
    out += ']';
  }
  return "(" + out + ")";
}

expression never() {
  expression e;
  e.kind = expression_kind::never;
  return e;
}

int rules::add(const std::string& hint) {
  if (rules_.size() >= max_rules)
    refuse(errc::too_large, "the schema needs too many grammar rules");
  std::string name;
  for (const char c : hint)
    if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')) name += c;
  if (name.size() > 24) name.resize(24);
  const auto n = rules_.size();
  rules_.push_back({"r" + std::to_string(n) + "_" + name, never(), std::nullopt});
  return static_cast<int>(n);
}

int rules::add(const std::string& hint, expression body) {
  const int rule = add(hint);
  define(rule, std::move(body));
  return rule;
}

void rules::define(int rule, expression body) {
  rules_[static_cast<std::size_t>(rule)].body = std::move(body);
}

void rules::followed_by(int rule, expression next) {
  rules_[static_cast<std::size_t>(rule)].next = std::move(next);
}

expression rules::reference(int rule) const {
  expression e;
  e.kind = expression_kind::rule;
  e.rule = rule;
  return e;
}

std::optional<std::string> rules::ebnf(int root) const {
  const auto n = rules_.size();
  std::vector<bool> rules_end(n);
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = n; i-- > 0;)
      if (!rules_end[i] && can_end(rules_[i].body, rules_end)) rules_end[i] = changed = true;
  }
  if (!rules_end[static_cast<std::size_t>(root)]) return std::nullopt;
  std::vector<std::string> names;
  for (const auto& r : rules_)
    names.push_back(r.name);
  names[static_cast<std::size_t>(root)] = "root";

  std::string out;
  std::vector<bool> printed(n);
  printer print(rules_end, names);
  print.used.push_back(root);
  for (std::size_t k = 0; k < print.used.size(); ++k) {
    const auto i = static_cast<std::size_t>(print.used[k]);
    if (printed[i]) continue;
    printed[i] = true;
    out += names[i] + " ::= ";
    const auto& next = rules_[i].next;
    if (next) out += '(';
    print.print(out, rules_[i].body, false);
    if (next) {
      out += ") (=";
      print.print(out, *next, false);
      out += ')';
    }
    out += '\n';
  }
  return out;
}

} // namespace twill::models::grammar
