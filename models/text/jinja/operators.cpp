#include "models/text/jinja/operators.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "models/text/jinja/print.hpp"

namespace twill::models::jinja {
namespace {

[[noreturn]] void fail_types(runtime& rt, std::string_view op, const val& a, const val& b) {
  rt.fail("unsupported operand types for " + std::string(op) + ": '" + type_name(a) + "' and '" +
          type_name(b) + "'");
}

val negative_of(const big_integer& number) {
  const std::string& digits = number.digits;
  return whole_val(digits.front() == '-' ? digits.substr(1) : "-" + digits);
}

[[noreturn]] void fail_overflow(runtime& rt) {
  rt.fail("integer result does not fit 64 bits");
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  const std::int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

val power(runtime& rt, std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) rt.fail("division by zero");
    return val(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  std::int64_t result = 1;
  for (std::int64_t e = exponent; e > 0; --e) {
    if (base == 0 || base == 1) return val(base);
    if (base == -1) return val(std::int64_t{exponent % 2 == 0 ? 1 : -1});
    if (__builtin_mul_overflow(result, base, &result)) fail_overflow(rt);
  }
  return val(result);
}

val whole_arithmetic(runtime& rt, std::string_view op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (op == "+" && !__builtin_add_overflow(a, b, &result)) return val(result);
  if (op == "-" && !__builtin_sub_overflow(a, b, &result)) return val(result);
  if (op == "*" && !__builtin_mul_overflow(a, b, &result)) return val(result);
  if (op == "**") return power(rt, a, b);
  if (op == "/" || op == "//" || op == "%") {
    if (b == 0) rt.fail("division by zero");
    if (op == "/") return val(static_cast<double>(a) / static_cast<double>(b));
    if (b == -1) { // the quotient of the least integer and -1 overflows
      if (op == "%") return val(std::int64_t{0});
      if (!__builtin_sub_overflow(std::int64_t{0}, a, &result)) return val(result);
      fail_overflow(rt);
    }
    if (op == "//") return val(floor_divide(a, b));
    return val(a - floor_divide(a, b) * b);
  }
  fail_overflow(rt);
}

val real_arithmetic(runtime& rt, std::string_view op, double a, double b) {
  if (op == "+") return val(a + b);
  if (op == "-") return val(a - b);
  if (op == "*") return val(a * b);
  if (op == "**") return val(std::pow(a, b));
  if (b == 0) rt.fail("division by zero");
  if (op == "/") return val(a / b);
  // As in Python, the result of % has the sign of the divisor, even if the result is zero. The
  // quotient of // is computed from the exact remainder, because a / b may round up to the next
  // integer.
  double r = std::fmod(a, b);
  if (r != 0 && (r < 0) != (b < 0)) r += b;
  if (op == "%") return val(r != 0 ? r : std::copysign(0.0, b));
  const double quotient = std::nearbyint((a - r) / b);
  return val(quotient != 0 ? quotient : std::copysign(0.0, a / b));
}

val repeat(runtime& rt, const val& sequence, std::int64_t times) {
  times = std::max<std::int64_t>(times, 0);
  const auto n = static_cast<std::size_t>(times);
  if (const text* t = sequence.as_text()) {
    if (!t->bytes.empty() && n > (std::size_t{1} << 40) / t->bytes.size())
      rt.fail("template makes too much text");
    rt.charge_text(n * t->bytes.size());
    text out;
    if (!t->bytes.empty())
      for (std::size_t i = 0; i < n; ++i)
        out.append(*t);
    return val(std::make_shared<const text>(std::move(out)));
  }
  const list_data& l = *sequence.as_list();
  if (!l.items.empty() && n > (std::size_t{1} << 40) / l.items.size())
    rt.fail("template makes too many values");
  rt.charge_elements(l.items.empty() ? 0 : n * l.items.size());
  std::vector<val> items;
  if (!l.items.empty())
    for (std::size_t i = 0; i < n; ++i)
      items.insert(items.end(), l.items.begin(), l.items.end());
  return val(rt.make_list(l.kind, std::move(items)));
}

bool is_sequence(const val& v) {
  return v.as_text() || (v.as_list() && v.as_list()->kind != list_data::generator);
}

val add_sequences(runtime& rt, const val& a, const val& b) {
  if (const text* x = a.as_text(), *y = b.as_text(); x && y) {
    rt.charge_text(x->bytes.size() + y->bytes.size());
    auto out = std::make_shared<text>(*x);
    out->append(*y);
    return val(text_ptr(std::move(out)));
  }
  const list_data *x = a.as_list(), *y = b.as_list();
  if (!x || !y || x->kind != y->kind || x->kind == list_data::generator) fail_types(rt, "+", a, b);
  std::vector<val> items = x->items;
  items.insert(items.end(), y->items.begin(), y->items.end());
  return val(rt.make_list(x->kind, std::move(items)));
}

} // namespace

void fail_undefined(runtime& rt, const val& v) {
  const auto& u = std::get<undefined_t>(v.data());
  rt.fail(u.reason ? *u.reason : "value is undefined");
}

val apply_binary(runtime& rt, std::string_view op, const val& a, const val& b) {
  require_defined(rt, a);
  if (op == "%" && a.as_text()) return format_percent(rt, *a.as_text(), b);
  require_defined(rt, b);
  if (const auto x = a.whole(), y = b.whole(); x && y) return whole_arithmetic(rt, op, *x, *y);
  if (a.is_number() && b.is_number() && !a.as_double() && !b.as_double()) fail_overflow(rt);
  if (const auto x = a.real(), y = b.real(); x && y) return real_arithmetic(rt, op, *x, *y);
  if (op == "+") return add_sequences(rt, a, b);
  if (op == "*" && is_sequence(a) && b.whole()) return repeat(rt, a, *b.whole());
  if (op == "*" && is_sequence(b) && a.whole()) return repeat(rt, b, *a.whole());
  fail_types(rt, op, a, b);
}

bool contains(runtime& rt, const val& container, const val& item) {
  if (container.is_undefined()) return false;
  if (const text* t = container.as_text()) {
    if (item.is_undefined()) fail_undefined(rt, item);
    const text* part = item.as_text();
    if (part == nullptr)
      rt.fail("'in <string>' requires string as left operand, not " + type_name(item));
    rt.add_work(t->bytes.size() / 64);
    return t->bytes.find(part->bytes) != std::string::npos;
  }
  if (auto* d = container.as_dict()) {
    rt.add_work(d->items.size() / 8);
    return d->find(item) != nullptr;
  }
  if (!container.as_list())
    rt.fail("argument of type '" + type_name(container) + "' is not iterable");
  const auto items = rt.iterate(container);
  return std::any_of(items.begin(), items.end(), [&](const val& v) { return equal(v, item); });
}

bool apply_compare(runtime& rt, std::string_view op, const val& a, const val& b) {
  if (op == "==") return equal(a, b);
  if (op == "!=") return !equal(a, b);
  if (op == "in") return contains(rt, b, a);
  if (op == "not in") return !contains(rt, b, a);
  require_defined(rt, a);
  require_defined(rt, b);
  const auto order = compare(a, b);
  if (!order)
    rt.fail("'" + std::string(op) + "' not supported between instances of '" + type_name(a) +
            "' and '" + type_name(b) + "'");
  if (op == "<") return *order == -1;
  if (op == "<=") return *order == -1 || *order == 0;
  if (op == ">") return *order == 1;
  return *order == 1 || *order == 0;
}

val negate(runtime& rt, const val& a) {
  require_defined(rt, a);
  if (const auto i = a.whole(); i && *i != std::numeric_limits<std::int64_t>::min())
    return val(-*i);
  if (const auto i = a.whole()) return negative_of({std::to_string(*i)});
  if (const auto* d = a.as_double()) return val(-*d);
  if (const auto* big = a.as_big()) return negative_of(*big);
  rt.fail("bad operand type for unary -: '" + type_name(a) + "'");
}

std::int64_t length_of(runtime& rt, const val& v) {
  if (v.is_undefined()) return 0;
  if (const text* t = v.as_text()) return static_cast<std::int64_t>(count_characters(t->bytes));
  if (const auto* l = v.as_list(); l && l->kind != list_data::generator)
    return static_cast<std::int64_t>(l->items.size());
  if (const auto* d = v.as_dict()) return static_cast<std::int64_t>(d->items.size());
  rt.fail("object of type '" + type_name(v) + "' has no len()");
}

} // namespace twill::models::jinja
