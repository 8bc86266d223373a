#include "models/families/config_reader.hpp"

#include <cmath>
#include <limits>

namespace twill::models::families {
namespace {

constexpr std::int64_t int32_max = std::numeric_limits<std::int32_t>::max();

} // namespace

std::string describe(const value& v) {
  if (v.is_null()) return "null";
  if (const bool* b = v.as_bool()) return *b ? "true" : "false";
  if (const auto* i = v.as_int()) return std::to_string(*i);
  if (const auto* d = v.as_double()) return std::to_string(*d);
  if (const auto* big = v.as_big()) return big->digits.substr(0, 100);
  if (const auto* s = v.as_string()) return "\"" + s->substr(0, 100) + "\"";
  return v.as_list() != nullptr ? "a list" : "an object";
}

const value* config_reader::find(std::string_view key) const {
  const value* v = config_->find(key);
  return v == nullptr || v->is_null() ? nullptr : v;
}

const value* config_reader::first(std::initializer_list<const char*> keys, const char*& key) const {
  key = *keys.begin();
  for (const char* k : keys)
    if (const value* v = find(k)) {
      key = k;
      return v;
    }
  return nullptr;
}

void config_reader::fail(errc code, const std::string& detail) {
  if (outcome_.ok()) outcome_ = failure{code, where_ + ": " + detail};
}

void config_reader::adopt(const config_reader& member) {
  if (outcome_.ok()) outcome_ = member.outcome_;
}

std::int32_t config_reader::size(std::initializer_list<const char*> keys) {
  const char* key = nullptr;
  const value* v = first(keys, key);
  if (v == nullptr) {
    fail(errc::missing_metadata, "`" + std::string(key) + "` is missing");
    return 1;
  }
  const auto* i = v->as_int();
  if (i != nullptr && *i >= 1 && *i <= int32_max) return static_cast<std::int32_t>(*i);
  fail(errc::bad_metadata,
       "`" + std::string(key) + "` must be an integer of at least 1, got " + describe(*v));
  return 1;
}

std::int32_t config_reader::size_or(std::initializer_list<const char*> keys,
                                    std::int32_t fallback) {
  const char* key = nullptr;
  const value* v = first(keys, key);
  if (v == nullptr) return fallback;
  const auto* i = v->as_int();
  if (i != nullptr && *i >= 0 && *i <= int32_max) return static_cast<std::int32_t>(*i);
  fail(errc::bad_metadata,
       "`" + std::string(key) + "` must be an integer of at least 0, got " + describe(*v));
  return fallback;
}

double config_reader::number_or(std::initializer_list<const char*> keys, double fallback) {
  const char* key = nullptr;
  const value* v = first(keys, key);
  if (v == nullptr) return fallback;
  if (const auto number = v->as_number(); number.has_value() && std::isfinite(*number))
    return *number;
  fail(errc::bad_metadata,
       "`" + std::string(key) + "` must be a finite number, got " + describe(*v));
  return fallback;
}

bool config_reader::flag_or(const char* key, bool fallback) {
  const value* v = find(key);
  if (v == nullptr) return fallback;
  if (const bool* b = v->as_bool()) return *b;
  fail(errc::bad_metadata, "`" + std::string(key) + "` must be true or false, got " + describe(*v));
  return fallback;
}

std::string config_reader::word_or(const char* key, const std::string& fallback) {
  const value* v = find(key);
  if (v == nullptr) return fallback;
  if (const auto* s = v->as_string()) return *s;
  fail(errc::bad_metadata, "`" + std::string(key) + "` must be a string, got " + describe(*v));
  return fallback;
}

void config_reader::require_flag(const char* key, bool wanted) {
  if (flag_or(key, wanted) == wanted) return;
  fail(errc::unsupported, "`" + std::string(key) + "` must be " + (wanted ? "true" : "false") +
                              " (twill does not run the other kind), got " + describe(*find(key)));
}

} // namespace twill::models::families
