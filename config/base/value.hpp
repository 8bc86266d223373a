// value: a JSON-like tree by which source folders exchange data without sharing a JSON library:
// net/ makes values from request bodies, and models/ feeds them to chat templates.
//
// Objects keep their insertion order (templates print them), and whole numbers all of their digits,
// as in Python. A plain value type: copy, move, compare.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace twill {

class value;
using value_list = std::vector<value>;
using value_object = std::vector<std::pair<std::string, value>>;

/// A whole number beyond 64 bits, as its digits: "-" in front of a negative one, no leading zeros.
struct big_integer {
  std::string digits;
  bool operator==(const big_integer&) const = default;
};

/// The nearest double; infinite if the number is beyond all doubles.
double nearest_double(const big_integer& number) noexcept;
/// Returns a negative number, zero or a positive number, as a < b, a == b or a > b.
int compare(const big_integer& a, const big_integer& b) noexcept;

class value {
public:
  using storage = std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, value_list,
                               value_object, big_integer>;

  value() : data_(nullptr) {}
  value(std::nullptr_t) : data_(nullptr) {}
  value(bool b) : data_(b) {}
  value(int i) : data_(std::int64_t{i}) {}
  value(std::int64_t i) : data_(i) {}
  value(double d) : data_(d) {}
  value(big_integer i) : data_(std::move(i)) {}
  value(const char* s) : data_(std::string(s)) {}
  value(std::string_view s) : data_(std::string(s)) {}
  value(std::string s) : data_(std::move(s)) {}
  value(value_list l) : data_(std::move(l)) {}
  value(value_object o) : data_(std::move(o)) {}

  /// The whole number with these digits, in JSON's notation: an int64 if it fits.
  static value whole_number(std::string_view digits);

  bool is_null() const noexcept { return std::holds_alternative<std::nullptr_t>(data_); }
  const bool* as_bool() const noexcept { return std::get_if<bool>(&data_); }
  const std::int64_t* as_int() const noexcept { return std::get_if<std::int64_t>(&data_); }
  const double* as_double() const noexcept { return std::get_if<double>(&data_); }
  const big_integer* as_big() const noexcept { return std::get_if<big_integer>(&data_); }
  /// Any number as the nearest double, which may be infinite.
  std::optional<double> as_number() const noexcept;
  const std::string* as_string() const noexcept { return std::get_if<std::string>(&data_); }
  const value_list* as_list() const noexcept { return std::get_if<value_list>(&data_); }
  const value_object* as_object() const noexcept { return std::get_if<value_object>(&data_); }

  /// Member of an object by key; nullptr when absent or when this is no object.
  const value* find(std::string_view key) const noexcept {
    if (const auto* object = as_object())
      for (const auto& [name, member] : *object)
        if (name == key) return &member;
    return nullptr;
  }

  const storage& data() const noexcept { return data_; }
  bool operator==(const value&) const = default;

private:
  storage data_;
};

/// Merges members with equal keys into one, at the place of the first and with the value of the
/// last.
void merge_repeated_keys(value_object& members);

} // namespace twill
