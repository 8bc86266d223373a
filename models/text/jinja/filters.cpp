#include "models/text/jinja/filters.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "models/text/jinja/arguments.hpp"
#include "models/text/jinja/operators.hpp"
#include "models/text/jinja/print.hpp"
#include "models/text/jinja/text_ops.hpp"

namespace twill::models::jinja {
namespace {

std::optional<val> parse_decimal(std::string_view digits, std::size_t sign) {
  const auto first = digits.find_first_not_of('0', sign);
  if (digits.find_first_not_of("0123456789", sign) != std::string_view::npos) return std::nullopt;
  const std::string_view rest =
      first == std::string_view::npos ? std::string_view("0") : digits.substr(first);
  return whole_val((digits.front() == '-' && rest != "0" ? "-" : "") + std::string(rest));
}

/// Converts text like Python's int(text): white space around the number, a sign, and digits with
/// single underscores are allowed. Only decimal numbers may exceed 64 bits.
std::optional<val> parse_whole(const text& t, std::int64_t base) {
  std::string s = strip(t, nullptr, sides::both).bytes;
  std::string digits;
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (s[i] == '_' && i > 0 && i + 1 < s.size() && s[i - 1] != '_') continue;
    digits += s[i];
  }
  const std::size_t sign = digits.starts_with('-') || digits.starts_with('+') ? 1 : 0;
  if (digits.size() == sign) return std::nullopt;
  if (base == 10) return parse_decimal(digits, sign);
  if (digits.size() > 70) return std::nullopt;
  if (std::isalnum(static_cast<unsigned char>(digits[sign])) == 0) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const long long n = std::strtoll(digits.c_str(), &end, static_cast<int>(base));
  if (*end != '\0' || errno != 0) return std::nullopt;
  return val(std::int64_t{n});
}

/// Converts text like Python's float(text).
std::optional<double> parse_real(const text& t) {
  std::string s = strip(t, nullptr, sides::both).bytes;
  if (s.empty() || s.size() > 400 || s.find_first_of("xXpP(") != std::string::npos)
    return std::nullopt;
  char* end = nullptr;
  const double d = std::strtod(s.c_str(), &end);
  if (end == s.c_str() || *end != '\0') return std::nullopt;
  return d;
}

/// Converts like Python's int(float).
std::optional<val> truncate(double d) {
  if (!std::isfinite(d)) return std::nullopt;
  char digits[320];
  const auto end =
      std::to_chars(digits, digits + sizeof digits, std::trunc(d), std::chars_format::fixed, 0);
  const std::string_view all(digits, static_cast<std::size_t>(end.ptr - digits));
  return whole_val(all == "-0" ? "0" : all);
}

val int_filter(evaluator& ev, const val& input, const call_args& args) {
  const arguments a(ev.rt(), "int", args, {"default", "base"});
  require_defined(ev.rt(), input);
  const std::int64_t base = a.whole(1, 10);
  if (base != 0 && (base < 2 || base > 36)) ev.rt().fail("int() base must be >= 2 and <= 36, or 0");
  if (input.as_big()) return input;
  std::optional<val> n;
  if (const auto whole = input.whole()) n = val(*whole);
  if (const double* d = input.as_double()) n = truncate(*d);
  if (const text* t = input.as_text()) {
    n = parse_whole(*t, base);
    if (const auto d = n ? std::nullopt : parse_real(*t)) n = truncate(*d);
  }
  if (n) return *n;
  return a.get(0) == nullptr ? val(std::int64_t{0}) : *a.get(0);
}

val float_filter(evaluator& ev, const val& input, const call_args& args) {
  const arguments a(ev.rt(), "float", args, {"default"});
  require_defined(ev.rt(), input);
  std::optional<double> d = input.real();
  if (const text* t = input.as_text()) d = parse_real(*t);
  if (d) return val(*d);
  return a.get(0) == nullptr ? val(0.0) : *a.get(0);
}

val abs_filter(evaluator& ev, const val& input, const call_args& args) {
  const arguments a(ev.rt(), "abs", args, {});
  require_defined(ev.rt(), input);
  if (const auto i = input.whole()) return *i < 0 ? negate(ev.rt(), input) : val(*i);
  if (const double* d = input.as_double()) return val(std::fabs(*d));
  if (const auto* big = input.as_big())
    return big->digits.front() == '-' ? negate(ev.rt(), input) : input;
  ev.rt().fail("bad operand type for abs(): '" + type_name(input) + "'");
}

/// Returns round(d, places), rounding the exact decimal value half to even as Python does.
double round_places(double d, std::int64_t places) {
  if (!std::isfinite(d) || places > 300) return d;
  if (places < -300) return 0.0 * d;
  if (places >= 0) { // printf rounds the exact value, half to even
    char buffer[700];
    std::snprintf(buffer, sizeof buffer, "%.*f", static_cast<int>(places), d);
    return std::strtod(buffer, nullptr);
  }
  const double scale = std::pow(10.0, static_cast<double>(-places));
  return std::nearbyint(d / scale) * scale;
}

val round_filter(evaluator& ev, const val& input, const call_args& args) {
  const arguments a(ev.rt(), "round", args, {"precision", "method"});
  require_defined(ev.rt(), input);
  const auto d = input.real();
  if (!d) ev.rt().fail("round takes a number, given " + type_name(input));
  const text* method = a.string(1);
  const std::string how = method == nullptr ? "common" : method->bytes;
  const std::int64_t places = a.whole(0, 0);
  if (how == "common") {
    if (!input.as_double() && places >= 0) return input.as_big() ? input : val(*input.whole());
    if (input.as_big()) ev.rt().fail("round: the integer does not fit 64 bits");
    const double rounded = round_places(*d, places);
    return input.whole() ? val(static_cast<std::int64_t>(rounded)) : val(rounded);
  }
  if (how != "ceil" && how != "floor") ev.rt().fail("method must be common, ceil or floor");
  const double scale = std::pow(10.0, static_cast<double>(places));
  const double whole = how == "ceil" ? std::ceil(*d * scale) : std::floor(*d * scale);
  return val((whole + 0.0) / scale); // + 0.0 turns -0.0 into 0.0, as Python's int does
}

val default_filter(evaluator& ev, const val& input, const call_args& args) {
  const arguments a(ev.rt(), "default", args, {"default_value", "boolean"});
  if (!input.is_undefined() && !(a.flag(1, false) && !truthy(input))) return input;
  return a.get(0) == nullptr ? ev.rt().make_text("") : *a.get(0);
}

val length_filter(evaluator& ev, const val& input, const call_args& args) {
  const arguments a(ev.rt(), "length", args, {});
  return val(length_of(ev.rt(), input));
}

val tojson_filter(evaluator& ev, const val& input, const call_args& args) {
  const arguments a(ev.rt(), "tojson", args, {"ensure_ascii", "indent", "separators", "sort_keys"});
  json_style style;
  style.ensure_ascii = a.flag(0, false);
  style.sort_keys = a.flag(3, false);
  if (const val* indent = a.get(1); indent != nullptr && !indent->is_none()) {
    const auto spaces = indent->whole();
    if (!spaces && !indent->as_text())
      ev.rt().fail("tojson: indent must be an integer or a string");
    if (spaces.value_or(0) > 64 || (indent->as_text() && indent->as_text()->bytes.size() > 64))
      ev.rt().fail("tojson: indent must be at most 64 characters");
    style.indent =
        spaces ? std::string(static_cast<std::size_t>(std::max<std::int64_t>(*spaces, 0)), ' ')
               : indent->as_text()->bytes;
    style.item_separator = ",";
  }
  if (const val* separators = a.get(2); separators != nullptr && !separators->is_none()) {
    const auto two = ev.rt().iterate(*separators);
    if (two.size() != 2 || !two[0].as_text() || !two[1].as_text())
      ev.rt().fail("tojson: separators must be two strings");
    style.item_separator = two[0].as_text()->bytes;
    style.key_separator = two[1].as_text()->bytes;
  }
  return ev.rt().make_text(to_json(ev.rt(), input, style));
}

} // namespace

filter_fn find_number_filter(std::string_view name) {
  constexpr std::pair<std::string_view, filter_fn> filters[] = {
      {"int", int_filter},       {"float", float_filter},     {"abs", abs_filter},
      {"round", round_filter},   {"default", default_filter}, {"d", default_filter},
      {"length", length_filter}, {"count", length_filter},    {"tojson", tojson_filter},
  };
  for (const auto& [key, filter] : filters)
    if (key == name) return filter;
  return nullptr;
}

filter_fn find_filter(std::string_view name) {
  for (const auto find :
       {find_text_filter, find_number_filter, find_sequence_filter, find_selection_filter})
    if (const filter_fn found = find(name)) return found;
  return nullptr;
}

} // namespace twill::models::jinja
