// The table of keys: which options can be configured, where each is stored, and which values are
// possible.
//
// The table is built once and never changes afterwards. This file does not include toml++.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/options.hpp"

namespace twill::config::detail {

/// Marks a 64-bit member as a byte count.
struct bytes_member {
  std::int64_t* bytes;
};

/// The address of the member in which a key is stored.
using member_address = std::variant<std::string*, std::int32_t*, bytes_member, milliseconds*,
                                    std::vector<std::string>*, bool*, double*>;

/// A value of any key: counts, bytes and milliseconds are integers.
using key_value = std::variant<std::string, std::int64_t, std::vector<std::string>, bool, double>;

enum class key_kind { text, count, bytes, time, list, flag, number };

/// Which values a key may have. `words` completes the sentence "must be ...".
struct rule {
  std::string words;
  std::function<bool(const key_value&)> holds;
};

/// The name of one member of `Owner` in the configuration, and the values that it may have.
template <class Owner>
struct basic_key {
  std::string_view name; ///< "table.member"
  member_address (*locate)(Owner&);
  std::string_view unit; ///< of a key that is a count; empty when it has none
  rule possible;
  std::string_view doc;
  bool secret = false; ///< its values are never printed
  bool single = false; ///< a list with one entry may be given as a plain string
};
using key = basic_key<options>;

/// All keys, grouped by table, in the order they are printed.
std::span<const key> all_keys();

/// nullptr when there is no such key.
const key* find_key(std::string_view name);

/// The name that a renamed key has now, or empty when no key had `old_name`. An old name is
/// accepted for one release.
std::string_view current_name(std::string_view old_name);

std::string_view table_of(std::string_view key_name);
std::string_view member_of(std::string_view key_name);

key_kind kind_at(const member_address& at);
key_value value_at(const member_address& at);
/// Stores `v`, which must have been read for this member and satisfy its rule.
void store_at(const member_address& at, const key_value& v);

template <class Owner>
key_kind kind_of(const basic_key<Owner>& k) {
  Owner any;
  return kind_at(k.locate(any));
}
template <class Owner>
key_value get(const basic_key<Owner>& k, const Owner& from) {
  // locate() returns a mutable address, but nothing is written through it here.
  return value_at(k.locate(const_cast<Owner&>(from)));
}
template <class Owner>
void set(const basic_key<Owner>& k, Owner& to, const key_value& v) {
  store_at(k.locate(to), v);
}

/// The value as TOML: "512 MiB", "30s", ["a"]. With `single`, a list of one entry is printed as
/// that string.
std::string print_value(key_kind kind, bool single, const key_value& v);
template <class Owner>
std::string print_value(const basic_key<Owner>& k, const key_value& v) {
  return print_value(kind_of(k), k.single, v);
}

} // namespace twill::config::detail
