// value: the values of a template: Python's types with the behaviour that they have in Jinja.
//
// Strings, and the reasons why values are undefined, are shared and immutable. Lists, dicts and
// objects belong to the runtime's arena (runtime.hpp) and are referred to by pointers, so that
// cycles cannot leak and nothing outlives the render. One render uses one thread.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "config/base/value.hpp"
#include "models/text/jinja/text.hpp"

namespace twill::models::jinja {

class runtime;
class val;
struct call_args;

struct none_t {};
struct undefined_t {
  std::shared_ptr<const std::string> reason; ///< the error's text if the value is used
};

struct list_data;
struct dict_data;

/// A value with its own attributes or calls: a namespace, loop, macro or method.
struct object {
  virtual ~object() = default;
  virtual std::string type_name() const = 0;
  /// The attribute of that name; nothing when there is none.
  virtual std::optional<val> attribute(std::string_view name) const;
  virtual bool callable() const { return false; }
  virtual val call(runtime& rt, call_args& args);
};

/// An int beyond 64 bits, which is printed and compared but not computed with.
using big_ptr = std::shared_ptr<const big_integer>;

class val {
public:
  using storage = std::variant<undefined_t, none_t, bool, std::int64_t, double, text_ptr,
                               list_data*, dict_data*, object*, big_ptr>;

  val() : data_(undefined_t{}) {}
  explicit val(undefined_t u) : data_(std::move(u)) {}
  explicit val(none_t) : data_(none_t{}) {}
  explicit val(bool b) : data_(b) {}
  explicit val(std::int64_t i) : data_(i) {}
  explicit val(double d) : data_(d) {}
  explicit val(big_ptr i) : data_(std::move(i)) {}
  explicit val(text_ptr t) : data_(std::move(t)) {}
  explicit val(list_data* l) : data_(l) {}
  explicit val(dict_data* d) : data_(d) {}
  explicit val(object* o) : data_(o) {}
  template <class T>
  explicit val(T*) = delete; ///< pointers must not become bool
  template <std::derived_from<object> T>
  explicit val(T* o) : data_(static_cast<object*>(o)) {}

  bool is_undefined() const { return std::holds_alternative<undefined_t>(data_); }
  bool is_none() const { return std::holds_alternative<none_t>(data_); }
  bool is_number() const { return as_bool() || as_int() || as_double() || as_big(); }
  const bool* as_bool() const { return std::get_if<bool>(&data_); }
  const std::int64_t* as_int() const { return std::get_if<std::int64_t>(&data_); }
  const double* as_double() const { return std::get_if<double>(&data_); }
  const big_integer* as_big() const {
    const auto* i = std::get_if<big_ptr>(&data_);
    return i == nullptr ? nullptr : i->get();
  }
  const text* as_text() const {
    const auto* t = std::get_if<text_ptr>(&data_);
    return t == nullptr ? nullptr : t->get();
  }
  list_data* as_list() const {
    const auto* l = std::get_if<list_data*>(&data_);
    return l == nullptr ? nullptr : *l;
  }
  dict_data* as_dict() const {
    const auto* d = std::get_if<dict_data*>(&data_);
    return d == nullptr ? nullptr : *d;
  }
  object* as_object() const {
    const auto* o = std::get_if<object*>(&data_);
    return o == nullptr ? nullptr : *o;
  }
  const storage& data() const { return data_; }

  /// A bool or int as Python's int, where it fits 64 bits.
  std::optional<std::int64_t> whole() const;
  /// Any number as a float.
  std::optional<double> real() const;

private:
  storage data_;
};

/// The int that these digits spell, of whatever size.
val whole_val(std::string_view digits);

struct list_data {
  enum kind_t { list, tuple, generator };
  kind_t kind = list;
  std::vector<val> items;
  bool consumed = false; ///< a generator gives its items once
};

struct dict_data {
  std::vector<std::pair<val, val>> items; ///< in insertion order

  val* find(std::string_view key);
  val* find(const val& key);
  void set(val key, val value);
};

struct call_args {
  std::vector<val> positional;
  std::vector<std::pair<std::string, val>> named;
};

/// Python's name of the type, for messages.
std::string type_name(const val& v);
bool truthy(const val& v);
/// Python's ==; values that nest too deep are unequal.
bool equal(const val& a, const val& b, int depth = 0);
/// Compares: negative, zero or positive; none if Python would raise TypeError.
std::optional<int> compare(const val& a, const val& b, int depth = 0);

} // namespace twill::models::jinja
