// value: a JSON-like tree that folders exchange without sharing a JSON library.
//
// net/ makes values from request bodies, models/ feeds them to chat templates. Objects keep their
// insertion order (templates print them). A plain value type: copy, move, compare.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace twill {

class value;
using value_list = std::vector<value>;
using value_object = std::vector<std::pair<std::string, value>>;

class value {
public:
  using storage = std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, value_list,
                               value_object>;

  value() : data_(nullptr) {}
  value(std::nullptr_t) : data_(nullptr) {}
  value(bool b) : data_(b) {}
  value(int i) : data_(std::int64_t{i}) {}
  value(std::int64_t i) : data_(i) {}
  value(double d) : data_(d) {}
  value(const char* s) : data_(std::string(s)) {}
  value(std::string_view s) : data_(std::string(s)) {}
  value(std::string s) : data_(std::move(s)) {}
  value(value_list l) : data_(std::move(l)) {}
  value(value_object o) : data_(std::move(o)) {}

  bool is_null() const noexcept { return std::holds_alternative<std::nullptr_t>(data_); }
  const bool* as_bool() const noexcept { return std::get_if<bool>(&data_); }
  const std::int64_t* as_int() const noexcept { return std::get_if<std::int64_t>(&data_); }
  const double* as_double() const noexcept { return std::get_if<double>(&data_); }
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

} // namespace twill
