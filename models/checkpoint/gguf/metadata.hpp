// metadata: the key-value section of a GGUF file, with checked getters.
//
// metadata is a plain value that owns its strings. It does not change once it is read from a file,
// so any thread may read it. Integers of every width become int64, but a single u64 that is too
// large for int64 becomes a double. Floats of both widths become double. Arrays of bools become
// int64 arrays of 0 and 1. Getters fail with missing_metadata or bad_metadata, naming the key.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "models/errc.hpp"

namespace twill::models::gguf {

using string_array = std::vector<std::string>;
using int_array = std::vector<std::int64_t>;
using float_array = std::vector<double>;

struct metadata {
  using entry =
      std::variant<bool, std::int64_t, double, std::string, string_array, int_array, float_array>;

  std::map<std::string, entry, std::less<>> entries;

  bool has(std::string_view key) const { return entries.find(key) != entries.end(); }

  /// The value when the key exists with exactly this type, else nullptr. T is a type of `entry`.
  template <class T>
  const T* find(std::string_view key) const {
    const auto it = entries.find(key);
    return it == entries.end() ? nullptr : std::get_if<T>(&it->second);
  }

  // Required keys fail with missing_metadata when absent, and with bad_metadata on another type.
  result<std::string> get_string(std::string_view key) const;
  /// An integer in [least, most].
  result<std::int64_t> get_int(std::string_view key, std::int64_t least, std::int64_t most) const;
  /// A finite number; integers are taken too.
  result<double> get_float(std::string_view key) const;
  result<bool> get_bool(std::string_view key) const;

  // Optional keys yield the fallback when absent, and fail with bad_metadata on another type.
  result<std::string> get_string_or(std::string_view key, std::string fallback) const;
  result<std::int64_t> get_int_or(std::string_view key, std::int64_t least, std::int64_t most,
                                  std::int64_t fallback) const;
  result<double> get_float_or(std::string_view key, double fallback) const;
  result<bool> get_bool_or(std::string_view key, bool fallback) const;

  /// Arrays, as references into this metadata; they fail as required keys do.
  result<const string_array*> get_strings(std::string_view key) const;
  result<const int_array*> get_ints(std::string_view key) const;
  /// Arrays of floats; get_ints reads those of integers.
  result<const float_array*> get_floats(std::string_view key) const;
};

} // namespace twill::models::gguf
