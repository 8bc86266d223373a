#include "models/text/grammar/schema/decimal.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <tuple>

#include "models/text/grammar/errc.hpp"
#include "models/text/grammar/schema/minimal.hpp"

namespace twill::models::grammar {
namespace {

constexpr std::int64_t max_modulus = 2000;

/// Returns `digits` * 10^shift as a decimal.
decimal from_scientific(bool negative, std::string digits, int point) {
  if (point <= 0) {
    digits.insert(0, static_cast<std::size_t>(1 - point), '0');
    point = 1;
  }
  if (static_cast<std::size_t>(point) > digits.size())
    digits.resize(static_cast<std::size_t>(point), '0');
  decimal out;
  out.negative = negative;
  out.whole = digits.substr(0, static_cast<std::size_t>(point));
  out.fraction = digits.substr(static_cast<std::size_t>(point));
  const auto first = out.whole.find_first_not_of('0');
  out.whole = first == std::string::npos ? "0" : out.whole.substr(first);
  while (!out.fraction.empty() && out.fraction.back() == '0')
    out.fraction.pop_back();
  if (out.is_zero()) out.negative = false;
  return out;
}

int compare_absolute(const decimal& a, const decimal& b) {
  if (a.whole.size() != b.whole.size()) return a.whole.size() < b.whole.size() ? -1 : 1;
  if (const int whole = a.whole.compare(b.whole); whole != 0) return whole < 0 ? -1 : 1;
  const int fraction = a.fraction.compare(b.fraction);
  return fraction < 0 ? -1 : fraction > 0 ? 1 : 0;
}

/// The divisor of `multipleOf`, as modulus / 10^places.
struct multiple_rule {
  std::int64_t modulus = 1;
  int places = 0;
};

multiple_rule rule_of(const decimal& multiple) {
  const auto digits = multiple.whole + multiple.fraction;
  multiple_rule rule;
  rule.places = static_cast<int>(multiple.fraction.size());
  rule.modulus = 0;
  for (const char c : digits) {
    rule.modulus = rule.modulus * 10 + (c - '0');
    if (rule.modulus > max_modulus)
      refuse(errc::too_large, "`multipleOf` with more than about three digits is not enforced");
  }
  return rule;
}

/// The state after some characters of a number have been read.
struct reading {
  enum class phase { start, sign, zero, whole, point, fraction };
  phase at = phase::start;
  bool negative = false;
  bool has_fraction = false; ///< a digit after the point was not zero
  bool not_zero = false;
  int n_whole = 0;        ///< digits before the point; at most the longest bound's plus 1
  int n_fraction = 0;     ///< digits after the point; at most the longest bound's
  std::vector<int> order; ///< by compared number: -1, 0 or 1 as the digits so far compare with its
                          ///< absolute value
  std::vector<std::int64_t> remainders;
  std::vector<int> places; ///< by multiple: digits read after the point, at most its places
  std::vector<bool> past;  ///< by multiple: a digit beyond its places was not zero

  auto key() const {
    return std::tie(at, negative, has_fraction, not_zero, n_whole, n_fraction, order, remainders,
                    places, past);
  }
  bool operator<(const reading& other) const { return key() < other.key(); }
};

class number_reader {
public:
  explicit number_reader(const number_rules& rules) : rules_(rules) {
    for (const auto& bound : rules.bounds)
      compared_.push_back(bound.at);
    for (const auto& number : rules.not_values)
      compared_.push_back(number);
    for (const auto& m : rules.multiples)
      multiples_.push_back(rule_of(m));
    for (const auto& m : rules.not_multiples)
      multiples_.push_back(rule_of(m));
    for (const auto& c : compared_) {
      longest_whole_ = std::max(longest_whole_, static_cast<int>(c.whole.size()));
      longest_fraction_ = std::max(longest_fraction_, static_cast<int>(c.fraction.size()));
    }
  }

  reading start() const {
    reading r;
    r.order.assign(compared_.size(), 0);
    r.remainders.assign(multiples_.size(), 0);
    r.places.assign(multiples_.size(), 0);
    r.past.assign(multiples_.size(), false);
    return r;
  }

  bool step(reading& r, char c) const {
    using phase = reading::phase;
    if (c == '-') {
      if (r.at != phase::start) return false;
      r.at = phase::sign;
      r.negative = true;
      return true;
    }
    if (c == '.') {
      if (r.at != phase::zero && r.at != phase::whole) return false;
      if (rules_.whole) return false;
      close_whole(r);
      r.at = phase::point;
      return true;
    }
    const int digit = c - '0';
    switch (r.at) {
    case phase::start:
    case phase::sign:
      r.at = digit == 0 ? phase::zero : phase::whole;
      break;
    case phase::zero:
      return false;
    case phase::point:
      r.at = phase::fraction;
      break;
    default:
      break;
    }
    take_digit(r, digit);
    return true;
  }

  bool accepts(reading r) const {
    using phase = reading::phase;
    if (r.at != phase::zero && r.at != phase::whole && r.at != phase::fraction) return false;
    if (r.at != phase::fraction) close_whole(r);
    if (rules_.fraction && !r.has_fraction) return false;
    if (rules_.whole && r.has_fraction) return false;
    for (std::size_t i = 0; i < compared_.size(); ++i) {
      const int order = final_order(r, i);
      if (i >= rules_.bounds.size()) {
        if (order == 0) return false;
        continue;
      }
      const auto& bound = rules_.bounds[i];
      const int inside = bound.is_least ? order : -order;
      if (inside < 0 || (inside == 0 && bound.exclusive)) return false;
    }
    for (std::size_t i = 0; i < multiples_.size(); ++i) {
      std::int64_t remainder = r.remainders[i];
      for (int k = r.places[i]; k < multiples_[i].places; ++k)
        remainder = remainder * 10 % multiples_[i].modulus;
      const bool is_multiple = remainder == 0 && !r.past[i];
      if (is_multiple != (i < rules_.multiples.size())) return false;
    }
    return true;
  }

private:
  /// At the end of the digits before the point, a number with fewer digits is smaller.
  void close_whole(reading& r) const {
    for (std::size_t i = 0; i < compared_.size(); ++i)
      if (r.n_whole < static_cast<int>(compared_[i].whole.size())) r.order[i] = -1;
    r.n_whole = 0;
  }

  void take_digit(reading& r, int digit) const {
    const bool fraction = r.at == reading::phase::fraction;
    const int at = fraction ? r.n_fraction : r.n_whole;
    for (std::size_t i = 0; i < compared_.size(); ++i) {
      const auto& digits = fraction ? compared_[i].fraction : compared_[i].whole;
      const int there =
          at < static_cast<int>(digits.size()) ? digits[static_cast<std::size_t>(at)] - '0' : 0;
      if (!fraction && at >= static_cast<int>(digits.size()))
        r.order[i] = 1; // longer before the point: greater, whatever the digits were
      else if (r.order[i] == 0)
        r.order[i] = digit < there ? -1 : digit > there ? 1 : 0;
    }
    if (digit != 0) {
      r.not_zero = true;
      if (fraction) r.has_fraction = true;
    }
    int& n = fraction ? r.n_fraction : r.n_whole;
    n = std::min(n + 1, fraction ? longest_fraction_ : longest_whole_ + 1);
    for (std::size_t i = 0; i < multiples_.size(); ++i) {
      if (fraction && r.places[i] >= multiples_[i].places) {
        if (digit != 0) r.past[i] = true;
        continue;
      }
      r.remainders[i] = (r.remainders[i] * 10 + digit) % multiples_[i].modulus;
      if (fraction) ++r.places[i];
    }
  }

  /// Returns the order of the number read and compared_[i], including signs.
  int final_order(const reading& r, std::size_t i) const {
    const auto& other = compared_[i];
    const bool negative = r.negative && r.not_zero;
    if (negative != other.negative) return negative ? -1 : 1;
    int order = r.order[i];
    // If all digits that were read equal those of the other number, the other number may have
    // further digits after the point. The last of these digits is not zero, so the absolute value
    // of the other number is then greater.
    if (order == 0 && r.n_fraction < static_cast<int>(other.fraction.size())) order = -1;
    return negative ? -order : order;
  }

  const number_rules& rules_;
  std::vector<decimal> compared_;
  std::vector<multiple_rule> multiples_;
  int longest_whole_ = 0;
  int longest_fraction_ = 0;
};

} // namespace

std::optional<decimal> decimal_of(const value& v) {
  if (v.as_int() != nullptr || v.as_big() != nullptr) {
    auto text = number_text(v);
    const bool negative = text.front() == '-';
    if (negative) text.erase(0, 1);
    const int n = static_cast<int>(text.size());
    return from_scientific(negative, std::move(text), n);
  }
  const auto* number = v.as_double();
  if (number == nullptr || !std::isfinite(*number)) return std::nullopt;
  char text[64];
  const char* end =
      std::to_chars(text, text + sizeof text, std::abs(*number), std::chars_format::scientific).ptr;
  std::string digits;
  int exponent = 0;
  for (const char* c = text; c != end; ++c) {
    if (*c == 'e') {
      exponent = std::stoi(std::string(c + 1, end));
      break;
    }
    if (*c != '.') digits += *c;
  }
  return from_scientific(*number < 0, std::move(digits), exponent + 1);
}

int compare(const decimal& a, const decimal& b) {
  if (a.negative != b.negative) return a.negative ? -1 : 1;
  const int absolute = compare_absolute(a, b);
  return a.negative ? -absolute : absolute;
}

std::string number_text(const value& v) {
  if (const auto* whole = v.as_int()) return std::to_string(*whole);
  if (const auto* big = v.as_big()) return big->digits;
  char text[64];
  const char* end = std::to_chars(text, text + sizeof text, *v.as_double()).ptr;
  std::string out(static_cast<const char*>(text), end);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}

bool is_rounded(const value& v) {
  const auto* number = v.as_double();
  return number != nullptr && std::abs(*number) >= 0x1p63;
}

automaton number_automaton(const number_rules& given) {
  // A bound that was rounded is moved inwards by more than the greatest possible rounding error.
  number_rules rules = given;
  for (auto& bound : rules.bounds) {
    if (bound.rounded == 0) continue;
    const double inside = bound.is_least ? HUGE_VAL : -HUGE_VAL;
    const double moved = std::nextafter(std::nextafter(bound.rounded, inside), inside);
    if (auto at = decimal_of(value(moved))) bound.at = std::move(*at);
  }
  const number_reader reader(rules);
  automaton out;
  out.states.clear();
  std::map<reading, int> ids;
  std::vector<reading> todo;
  const auto id_of = [&](const reading& r) {
    const auto [it, is_new] = ids.emplace(r, static_cast<int>(out.states.size()));
    if (is_new) {
      if (out.states.size() >= 4 * automaton::max_states)
        refuse(errc::too_large, "a number's bounds and multiples together need too many states");
      out.states.push_back({{}, reader.accepts(r)});
      todo.push_back(r);
    }
    return it->second;
  };
  id_of(reader.start());
  for (std::size_t i = 0; i < todo.size(); ++i) {
    std::map<int, code_points> edges;
    for (const char* c = "-.0123456789"; *c != 0; ++c) {
      reading next = todo[i];
      if (!reader.step(next, *c)) continue;
      const auto point = static_cast<std::uint32_t>(*c);
      const int to = id_of(next);
      edges[to] = edges[to] | code_points(point, point);
    }
    for (auto& [to, set] : edges)
      out.states[i].edges.push_back({std::move(set), to});
  }
  return minimal(out);
}

bool satisfies(const decimal& number, const number_rules& rules) {
  const number_reader reader(rules);
  auto r = reader.start();
  std::string text = (number.negative ? "-" : "") + number.whole;
  if (!number.fraction.empty()) text += "." + number.fraction;
  for (const char c : text)
    if (!reader.step(r, c)) return false;
  return reader.accepts(r);
}

} // namespace twill::models::grammar
