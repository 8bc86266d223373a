// config_reader: typed access to a model folder's config.json that remembers the first failure.
//
// A family reads its keys one after another and checks ok() at the end. A read that fails returns
// its fallback (1 for a required integer). Messages have the form "config.json: `key` must be ...,
// got ...". An object is used by one thread.
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
  /// `where` is the beginning of every message.
  explicit config_reader(const value& config, std::string where = "config.json")
      : config_(&config), where_(std::move(where)) {}

  /// Reads a required integer in 1..2^31-1 from the first of `keys` that is present.
  std::int32_t size(std::initializer_list<const char*> keys);
  /// Reads an integer in 0..2^31-1; returns `fallback` if none of `keys` is present with a value
  /// other than null.
  std::int32_t size_or(std::initializer_list<const char*> keys, std::int32_t fallback);
  double number_or(std::initializer_list<const char*> keys, double fallback);
  bool flag_or(const char* key, bool fallback);
  std::string word_or(const char* key, const std::string& fallback);

  /// Fails with unsupported unless `key` is absent, null or equal to `wanted`.
  void require_flag(const char* key, bool wanted);

  /// Returns the value of `key`; nullptr if the key is absent or its value is null.
  const value* find(std::string_view key) const;
  void fail(errc code, const std::string& detail);
  /// Copies the failure of `member`, which reads a JSON object inside this reader's object, if this
  /// reader has no failure yet.
  void adopt(const config_reader& member);
  const result<nothing>& outcome() const { return outcome_; }
  bool ok() const { return outcome_.ok(); }

private:
  const value* first(std::initializer_list<const char*> keys, const char*& key) const;

  const value* config_;
  std::string where_;
  result<nothing> outcome_ = nothing{};
};

/// Describes a JSON value in a few words, for messages.
std::string describe(const value& v);

} // namespace twill::models::families
