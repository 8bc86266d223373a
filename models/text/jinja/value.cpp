#include "models/text/jinja/value.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>

#include "models/text/jinja/runtime.hpp"

namespace twill::models::jinja {
namespace {

constexpr int max_compare_depth = 64;

template <class T>
int three_way(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

/// Returns the digits of an int.
big_integer digits_of(const val& v) {
  return v.as_big() ? *v.as_big() : big_integer{std::to_string(v.whole().value_or(0))};
}

/// Returns the integer part of a finite float, exactly.
big_integer whole_part(double d) {
  char digits[320];
  const auto end =
      std::to_chars(digits, digits + sizeof digits, std::trunc(d), std::chars_format::fixed, 0);
  const std::string_view all(digits, static_cast<std::size_t>(end.ptr - digits));
  return {std::string(all == "-0" ? "0" : all)};
}

/// Compares an int with a float exactly, as Python does. `real` must not be NaN.
int compare_mixed(const val& whole, double real) {
  if (std::isinf(real)) return real > 0 ? -1 : 1;
  if (const int order = compare(digits_of(whole), whole_part(real)); order != 0) return order;
  return three_way(std::trunc(real), real);
}

/// Compares two numbers. Every comparison with NaN is false: the result 2 means neither less, equal
/// nor greater.
int compare_numbers(const val& a, const val& b) {
  if (const auto x = a.whole(), y = b.whole(); x && y) return three_way(*x, *y);
  const double *x = a.as_double(), *y = b.as_double();
  if ((x && std::isnan(*x)) || (y && std::isnan(*y))) return 2;
  if (x && y) return three_way(*x, *y);
  if (y) return compare_mixed(a, *y);
  if (x) return -compare_mixed(b, *x);
  return compare(digits_of(a), digits_of(b));
}

bool equal_dicts(const dict_data& a, dict_data& b, int depth) {
  return a.items.size() == b.items.size() &&
         std::all_of(a.items.begin(), a.items.end(), [&](const auto& item) {
           const val* other = b.find(item.first);
           return other != nullptr && equal(item.second, *other, depth + 1);
         });
}

} // namespace

std::optional<val> object::attribute(std::string_view) const {
  return std::nullopt;
}

val object::call(runtime& rt, call_args&) {
  rt.fail("'" + type_name() + "' object is not callable");
}

std::optional<std::int64_t> val::whole() const {
  if (const auto* i = as_int()) return *i;
  if (const auto* b = as_bool()) return *b ? 1 : 0;
  return std::nullopt;
}

std::optional<double> val::real() const {
  if (const auto* d = as_double()) return *d;
  if (const auto i = whole()) return static_cast<double>(*i);
  if (const auto* big = as_big()) return nearest_double(*big);
  return std::nullopt;
}

val whole_val(std::string_view digits) {
  const value read = value::whole_number(digits);
  if (const auto* i = read.as_int()) return val(*i);
  return val(std::make_shared<const big_integer>(*read.as_big()));
}

val* dict_data::find(std::string_view key) {
  for (auto& [name, member] : items)
    if (const text* t = name.as_text(); t != nullptr && t->bytes == key) return &member;
  return nullptr;
}

val* dict_data::find(const val& key) {
  if (const text* t = key.as_text()) return find(std::string_view(t->bytes));
  for (auto& [name, member] : items)
    if (equal(name, key)) return &member;
  return nullptr;
}

void dict_data::set(val key, val value) {
  if (val* member = find(key))
    *member = std::move(value);
  else
    items.emplace_back(std::move(key), std::move(value));
}

std::string type_name(const val& v) {
  if (v.is_undefined()) return "Undefined";
  if (v.is_none()) return "None";
  if (v.as_bool()) return "bool";
  if (v.as_int() || v.as_big()) return "int";
  if (v.as_double()) return "float";
  if (v.as_text()) return "str";
  if (v.as_dict()) return "dict";
  if (const auto* l = v.as_list())
    return l->kind == list_data::list    ? "list"
           : l->kind == list_data::tuple ? "tuple"
                                         : "generator";
  return v.as_object()->type_name();
}

bool truthy(const val& v) {
  if (v.is_undefined() || v.is_none()) return false;
  if (const auto* b = v.as_bool()) return *b;
  if (const auto* i = v.as_int()) return *i != 0;
  if (const auto* d = v.as_double()) return *d != 0;
  if (const auto* t = v.as_text()) return !t->bytes.empty();
  if (const auto* l = v.as_list()) return l->kind == list_data::generator || !l->items.empty();
  if (const auto* d = v.as_dict()) return !d->items.empty();
  return true; // an object, or an int that is not 0
}

bool equal(const val& a, const val& b, int depth) {
  if (depth > max_compare_depth) return false;
  if (a.is_number() || b.is_number()) {
    return a.is_number() && b.is_number() && compare_numbers(a, b) == 0;
  }
  if (const auto* x = a.as_text(), *y = b.as_text(); x && y) return x->bytes == y->bytes;
  if (const auto* x = a.as_list(), *y = b.as_list(); x && y) {
    if (x == y) return true;
    if (x->kind != y->kind || x->kind == list_data::generator) return false;
    return std::equal(x->items.begin(), x->items.end(), y->items.begin(), y->items.end(),
                      [depth](const val& l, const val& r) { return equal(l, r, depth + 1); });
  }
  if (auto* x = a.as_dict(), *y = b.as_dict(); x && y) return x == y || equal_dicts(*x, *y, depth);
  if (a.as_object() && b.as_object()) return a.as_object() == b.as_object();
  return (a.is_none() && b.is_none()) || (a.is_undefined() && b.is_undefined());
}

std::optional<int> compare(const val& a, const val& b, int depth) {
  if (depth > max_compare_depth) return std::nullopt;
  if (a.is_number() && b.is_number()) return compare_numbers(a, b);
  // UTF-8 has the same order by bytes as by code points.
  if (const auto* x = a.as_text(), *y = b.as_text(); x && y) return three_way(x->bytes, y->bytes);
  const auto *x = a.as_list(), *y = b.as_list();
  if (!x || !y || x->kind != y->kind || x->kind == list_data::generator) return std::nullopt;
  const std::size_t n = std::min(x->items.size(), y->items.size());
  for (std::size_t i = 0; i < n; ++i)
    if (!equal(x->items[i], y->items[i], depth + 1))
      return compare(x->items[i], y->items[i], depth + 1);
  return three_way(x->items.size(), y->items.size());
}

} // namespace twill::models::jinja
