// config_reader: typed access to a model folder's config.json, remembering the first failure.
//
// A family reads its keys one after another and asks ok() at the end. After a failure, reads yield
// their fallback. Messages read "config.json: `key` must be ..., got ...". One thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "config/base/value.hpp"
#include "models/errc.hpp"

namespace twill::models::families {

class config_reader {
public:
  /// Every message begins with `where`.
  explicit config_reader(const value& config, std::string where = "config.json")
      : config_(&config), where_(std::move(where)) {}

  /// A required integer in 1..2^31-1, under the first of `keys` that is there.
  std::int32_t size(std::initializer_list<const char*> keys);
  /// An integer in 0..2^31-1, or `fallback` when none of `keys` is there or its value is null.
  std::int32_t size_or(std::initializer_list<const char*> keys, std::int32_t fallback);
  double number_or(std::initializer_list<const char*> keys, double fallback);
  bool flag_or(const char* key, bool fallback);
  std::string word_or(const char* key, const std::string& fallback);

  /// Fails with unsupported unless `key` is absent, null or equal to `wanted`.
  void require_flag(const char* key, bool wanted);

  /// The member; nullptr when absent or null.
  const value* find(std::string_view key) const;
  void fail(errc code, const std::string& detail);
  /// Takes over the failure of a reader of one of the members.
  void adopt(const config_reader& member);
  const result<nothing>& outcome() const { return outcome_; }
  bool ok() const { return outcome_.ok(); }

private:
  const value* first(std::initializer_list<const char*> keys, const char*& key) const;

  const value* config_;
  std::string where_;
  result<nothing> outcome_ = nothing{};
};

/// A JSON value in a few words, for messages.
std::string describe(const value& v);

} // namespace twill::models::families
