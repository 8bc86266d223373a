// The table of keys: what can be configured, where it is stored, and which values are possible.
//
// Built once, read only afterwards. Nothing here knows TOML.
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

struct key {
  std::string_view name; ///< "table.member"
  member_address (*locate)(options&);
  std::string_view unit; ///< of a key that is a count; empty when it has none
  rule possible;
  std::string_view doc;
  bool secret = false; ///< its values are never printed
  bool single = false; ///< a list of one may be given as that one string
};

/// All keys, grouped by table, in the order they are printed.
std::span<const key> all_keys();

/// nullptr when there is no such key.
const key* find_key(std::string_view name);

/// The name that a renamed key has now, or empty when no key had `old_name`. An old name is
/// accepted for one release.
std::string_view current_name(std::string_view old_name);

std::string_view table_of(const key& k);
std::string_view member_of(const key& k);
key_kind kind_of(const key& k);

key_value get(const key& k, const options& from);
/// `v` has been read for this key and obeys its rule.
void set(const key& k, options& to, const key_value& v);

/// As a TOML value: "512 MiB", "30s", ["a"].
std::string print_value(const key& k, const key_value& v);

} // namespace twill::config::detail
