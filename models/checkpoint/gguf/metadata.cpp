#include "models/checkpoint/gguf/metadata.hpp"

#include <array>
#include <cmath>

namespace twill::models::gguf {
namespace {

const char* type_name(const metadata::entry& e) {
  static constexpr std::array<const char*, 7> names = {"a bool",
                                                       "an integer",
                                                       "a float",
                                                       "a string",
                                                       "an array of strings",
                                                       "an array of integers",
                                                       "an array of floats"};
  return names[e.index()];
}

failure missing(std::string_view key) {
  return {errc::missing_metadata, "`" + std::string(key) + "` is missing from the file's metadata"};
}

failure wrong_type(std::string_view key, const char* expected, const metadata::entry& found) {
  return {errc::bad_metadata,
          "`" + std::string(key) + "` must be " + expected + ", got " + type_name(found)};
}

template <class T>
result<const T*> require(const metadata& m, std::string_view key, const char* expected) {
  const auto it = m.entries.find(key);
  if (it == m.entries.end()) return missing(key);
  if (const T* value = std::get_if<T>(&it->second)) return value;
  return wrong_type(key, expected, it->second);
}

} // namespace

result<std::string> metadata::get_string(std::string_view key) const {
  auto found = require<std::string>(*this, key, "a string");
  if (!found.ok()) return found.error();
  return *found.value();
}

result<std::int64_t> metadata::get_int(std::string_view key, std::int64_t least,
                                       std::int64_t most) const {
  auto found = require<std::int64_t>(*this, key, "an integer");
  if (!found.ok()) return found.error();
  const std::int64_t value = *found.value();
  if (value < least || value > most)
    return failure{errc::bad_metadata, "`" + std::string(key) + "` must be in " +
                                           std::to_string(least) + ".." + std::to_string(most) +
                                           ", got " + std::to_string(value)};
  return value;
}

result<double> metadata::get_float(std::string_view key) const {
  if (const auto* integer = find<std::int64_t>(key)) return static_cast<double>(*integer);
  auto found = require<double>(*this, key, "a number");
  if (!found.ok()) return found.error();
  if (!std::isfinite(*found.value()))
    return failure{errc::bad_metadata, "`" + std::string(key) + "` must be finite, got " +
                                           std::to_string(*found.value())};
  return *found.value();
}

result<bool> metadata::get_bool(std::string_view key) const {
  auto found = require<bool>(*this, key, "a bool");
  if (!found.ok()) return found.error();
  return *found.value();
}

result<std::string> metadata::get_string_or(std::string_view key, std::string fallback) const {
  if (!has(key)) return fallback;
  return get_string(key);
}

result<std::int64_t> metadata::get_int_or(std::string_view key, std::int64_t least,
                                          std::int64_t most, std::int64_t fallback) const {
  if (!has(key)) return fallback;
  return get_int(key, least, most);
}

result<double> metadata::get_float_or(std::string_view key, double fallback) const {
  if (!has(key)) return fallback;
  return get_float(key);
}

result<bool> metadata::get_bool_or(std::string_view key, bool fallback) const {
  if (!has(key)) return fallback;
  return get_bool(key);
}

result<const string_array*> metadata::get_strings(std::string_view key) const {
  return require<string_array>(*this, key, "an array of strings");
}

result<const int_array*> metadata::get_ints(std::string_view key) const {
  return require<int_array>(*this, key, "an array of integers");
}

result<const float_array*> metadata::get_floats(std::string_view key) const {
  return require<float_array>(*this, key, "an array of floats");
}

} // namespace twill::models::gguf
