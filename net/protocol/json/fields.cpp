#include "net/protocol/json/fields.hpp"

#include <charconv>
#include <cmath>

#include "net/protocol/json/json_writer.hpp"

namespace twill::net {

std::optional<std::int64_t> as_integer(const value& v) noexcept {
  if (const auto* integer = v.as_int()) return *integer;
  if (const auto* number = v.as_double())
    if (std::abs(*number) < 9.0e15 && std::trunc(*number) == *number)
      return static_cast<std::int64_t>(*number);
  return std::nullopt;
}

fields::fields(const value& object, std::string path) : object_(object), path_(std::move(path)) {
  if (object.as_object() != nullptr) return;
  const std::string name = path_.empty() ? "body" : "`" + path_.substr(0, path_.size() - 1) + "`";
  error_ = api_error{errc::invalid_field, name + " must be a JSON object, got " + describe(object),
                     path_.empty() ? "" : path_.substr(0, path_.size() - 1)};
}

std::span<const value_object::value_type> fields::members() const noexcept {
  const auto* members = object_.as_object();
  if (members == nullptr) return {};
  return *members;
}

const value* fields::find(std::string_view name) const noexcept {
  const auto* found = object_.find(name);
  return found == nullptr || found->is_null() ? nullptr : found;
}

void fields::reject(std::string_view name, std::string_view rule, const value& given) {
  if (!ok()) return;
  reject({path_ + std::string(name), "be " + std::string(rule), describe(given)});
}

void fields::reject(const breach& found) {
  reject(api_error::of(found));
}

void fields::reject(api_error error) {
  if (ok()) error_ = std::move(error);
}

void fields::require(std::string_view name) {
  if (!ok() || find(name) != nullptr) return;
  reject({path_ + std::string(name), "be given", "nothing"});
}

void fields::read(std::string_view name, bool& to) {
  const auto* v = find(name);
  if (v == nullptr) return;
  if (const auto* flag = v->as_bool())
    to = *flag;
  else
    reject(name, "true or false", *v);
}

void fields::read(std::string_view name, std::string& to) {
  const auto* v = find(name);
  if (v == nullptr) return;
  if (const auto* text = v->as_string())
    to = *text;
  else
    reject(name, "a string", *v);
}

void fields::read(std::string_view name, float& to) {
  const auto* v = find(name);
  if (v == nullptr) return;
  const auto number = v->as_number();
  if (!number.has_value()) return reject(name, "a number", *v);
  if (std::abs(*number) > std::numeric_limits<float>::max())
    return reject(name, "a number that fits 32 bits", *v);
  to = static_cast<float>(*number);
}

void fields::read(std::string_view name, std::int32_t& to, std::int64_t least, std::int64_t most) {
  const auto* v = find(name);
  if (v == nullptr) return;
  const auto integer = as_integer(*v);
  if (!integer.has_value()) {
    const bool is_number = v->as_number().has_value();
    return reject(name, is_number ? "a whole number in range" : "an integer", *v);
  }
  if (*integer < least) return reject(name, ">= " + std::to_string(least), *v);
  if (*integer > most) return reject(name, "<= " + std::to_string(most), *v);
  to = static_cast<std::int32_t>(*integer);
}

void fields::read(std::string_view name, std::optional<std::uint64_t>& to) {
  const auto* v = find(name);
  if (v == nullptr) return;
  if (const auto integer = as_integer(*v)) {
    to = static_cast<std::uint64_t>(*integer);
    return;
  }
  const auto* big = v->as_big();
  const std::string_view digits = big == nullptr ? std::string_view() : big->digits;
  std::uint64_t whole = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), whole);
  if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size())
    return reject(name, "an integer of at most 64 bits", *v);
  to = whole;
}

void fields::read(std::string_view name, std::vector<std::int32_t>& to) {
  const auto* v = find(name);
  if (v == nullptr) return;
  const auto* list = v->as_list();
  if (list == nullptr) return reject(name, "a list of token ids", *v);
  to.clear();
  to.reserve(list->size());
  for (std::size_t i = 0; i < list->size(); ++i) {
    const auto id = as_integer((*list)[i]);
    if (!id.has_value() || *id < 0 || *id > std::numeric_limits<std::int32_t>::max())
      return reject(std::string(name) + "[" + std::to_string(i) + "]",
                    "a token id, an integer >= 0", (*list)[i]);
    to.push_back(static_cast<std::int32_t>(*id));
  }
}

void fields::read_strings(std::string_view name, std::vector<std::string>& to) {
  const auto* v = find(name);
  if (v == nullptr) return;
  to.clear();
  if (const auto* text = v->as_string()) return to.push_back(*text);
  const auto* list = v->as_list();
  if (list == nullptr) return reject(name, "a string or a list of strings", *v);
  for (std::size_t i = 0; i < list->size(); ++i) {
    const auto* text = (*list)[i].as_string();
    if (text == nullptr)
      return reject(std::string(name) + "[" + std::to_string(i) + "]", "a string", (*list)[i]);
    to.push_back(*text);
  }
}

const value* fields::object(std::string_view name) {
  const auto* v = find(name);
  if (v == nullptr || v->as_object() != nullptr) return v;
  reject(name, "an object", *v);
  return nullptr;
}

} // namespace twill::net
