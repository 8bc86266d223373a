#include "models/text/grammar/schema/validator.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "models/text/grammar/schema/decimal.hpp"
#include "models/text/grammar/schema/formats.hpp"
#include "models/text/grammar/schema/keywords.hpp"
#include "models/text/grammar/schema/utf8.hpp"

namespace twill::models::grammar {
namespace {

constexpr int max_reference_depth = 200;

} // namespace

bool json_equal(const value& a, const value& b) {
  const auto x = decimal_of(a), y = decimal_of(b);
  if (x || y) return x && y && compare(*x, *y) == 0;
  if (const auto* p = a.as_list(), *q = b.as_list(); p && q) {
    return std::equal(p->begin(), p->end(), q->begin(), q->end(), json_equal);
  }
  if (const auto* p = a.as_object(), *q = b.as_object(); p && q) {
    return p->size() == q->size() && std::all_of(p->begin(), p->end(), [&b](const auto& entry) {
             const auto* other = member(b, entry.first);
             return other != nullptr && json_equal(entry.second, *other);
           });
  }
  return a == b;
}

bool has_type(const value& instance, const std::string& type) {
  if (type == "null") return instance.is_null();
  if (type == "boolean") return instance.as_bool() != nullptr;
  if (type == "string") return instance.as_string() != nullptr;
  if (type == "array") return instance.as_list() != nullptr;
  if (type == "object") return instance.as_object() != nullptr;
  const auto number = decimal_of(instance);
  return number && (type == "number" || (type == "integer" && number->is_whole()));
}

bool validator::valid(const value& schema, const value& instance, int depth) {
  if (depth > max_reference_depth) refuse(errc::unsupported, "`$ref` leads to itself without end");
  if (const auto* always = schema.as_bool()) return *always;
  if (schema.as_object() == nullptr)
    refuse(errc::bad_schema,
           doc_->pointer_to(schema) + ": a schema must be an object, true or false");
  if (const auto* ref = member(schema, "$ref"); ref != nullptr && ref->as_string() != nullptr) {
    if (!valid(doc_->resolve(schema, *ref->as_string()), instance, depth + 1)) return false;
    if (doc_->ignores_beside_ref()) return true;
  }
  check_known(schema, *doc_);
  if (const auto* type = member(schema, "type")) {
    const auto types = type_names(*type);
    if (std::none_of(types.begin(), types.end(),
                     [&](const auto& t) { return has_type(instance, t); }))
      return false;
  }
  if (const auto* fixed = member(schema, "const");
      fixed != nullptr && !json_equal(*fixed, instance))
    return false;
  if (const auto* listed = member(schema, "enum");
      listed != nullptr && listed->as_list() != nullptr) {
    const auto& list = *listed->as_list();
    if (std::none_of(list.begin(), list.end(),
                     [&](const auto& v) { return json_equal(v, instance); }))
      return false;
  }
  if (!valid_number(schema, instance)) return false;
  if (const auto* text = instance.as_string(); text != nullptr && !valid_string(schema, *text))
    return false;
  if (const auto* items = instance.as_list();
      items != nullptr && !valid_array(schema, *items, depth))
    return false;
  if (const auto* members = instance.as_object();
      members != nullptr && !valid_object(schema, *members, instance, depth))
    return false;
  return valid_combined(schema, instance, depth) && valid_unevaluated(schema, instance, depth);
}

bool validator::valid_number(const value& schema, const value& instance) {
  const auto number = decimal_of(instance);
  return !number || satisfies(*number, number_rules_of(schema, *doc_));
}

bool validator::valid_string(const value& schema, const std::string& text) {
  const auto length = static_cast<std::int64_t>(code_points_of(text).size());
  if (const auto least = count_of(schema, "minLength", *doc_); least && length < *least)
    return false;
  if (const auto most = count_of(schema, "maxLength", *doc_); most && length > *most) return false;
  if (const auto pattern = string_of(schema, "pattern", *doc_);
      pattern && !patterns_->found_in(*pattern, text))
    return false;
  if (const auto format = string_of(schema, "format", *doc_)) {
    const auto& pattern = format_pattern(*format);
    if (!pattern.empty() && !patterns_->found_in(pattern, text)) return false;
  }
  return true;
}

bool validator::valid_array(const value& schema, const value_list& items, int depth) {
  const auto n = static_cast<std::int64_t>(items.size());
  if (const auto least = count_of(schema, "minItems", *doc_); least && n < *least) return false;
  if (const auto most = count_of(schema, "maxItems", *doc_); most && n > *most) return false;
  if (const auto* unique = member(schema, "uniqueItems");
      unique && unique->as_bool() && *unique->as_bool()) {
    for (std::size_t i = 0; i < items.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (json_equal(items[i], items[j])) return false;
  }
  const auto shape = items_of(schema, *doc_);
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto* part = i < shape.prefix.size() ? shape.prefix[i] : shape.rest;
    if (part != nullptr && !valid(*part, items[i], depth + 1)) return false;
  }
  if (const auto* wanted = member(schema, "contains")) {
    const auto found = std::count_if(items.begin(), items.end(), [&](const auto& item) {
      return valid(*wanted, item, depth + 1);
    });
    if (found < count_of(schema, "minContains", *doc_).value_or(1)) return false;
    if (const auto most = count_of(schema, "maxContains", *doc_); most && found > *most)
      return false;
  }
  return true;
}

bool validator::valid_object(const value& schema, const value_object& members,
                             const value& instance, int depth) {
  const auto n = static_cast<std::int64_t>(members.size());
  if (const auto least = count_of(schema, "minProperties", *doc_); least && n < *least)
    return false;
  if (const auto most = count_of(schema, "maxProperties", *doc_); most && n > *most) return false;
  for (const auto& name : names_of(schema, "required", *doc_))
    if (member(instance, name) == nullptr) return false;
  const auto* properties = member(schema, "properties");
  const auto* by_pattern = member(schema, "patternProperties");
  const auto* others = member(schema, "additionalProperties");
  const auto* names = member(schema, "propertyNames");
  for (const auto& [name, inner] : members) {
    if (names != nullptr && !valid(*names, value(name), depth + 1)) return false;
    bool known = false;
    if (const auto* part = properties == nullptr ? nullptr : member(*properties, name)) {
      known = true;
      if (!valid(*part, inner, depth + 1)) return false;
    }
    if (by_pattern != nullptr && by_pattern->as_object() != nullptr)
      for (const auto& [pattern, part] : *by_pattern->as_object()) {
        if (!patterns_->found_in(pattern, name)) continue;
        known = true;
        if (!valid(part, inner, depth + 1)) return false;
      }
    if (!known && others != nullptr && !valid(*others, inner, depth + 1)) return false;
  }
  for (const auto* keyword : {"dependencies", "dependentRequired", "dependentSchemas"}) {
    const auto* dependent = member(schema, keyword);
    if (dependent == nullptr || dependent->as_object() == nullptr) continue;
    for (const auto& [name, needs] : *dependent->as_object()) {
      if (member(instance, name) == nullptr) continue;
      if (const auto* list = needs.as_list()) {
        for (const auto& other : *list)
          if (other.as_string() == nullptr || member(instance, *other.as_string()) == nullptr)
            return false;
      } else if (!valid(needs, instance, depth + 1)) {
        return false;
      }
    }
  }
  return true;
}

bool validator::valid_unevaluated(const value& schema, const value& instance, int depth) {
  const auto* rest = member(schema, "unevaluatedProperties");
  if (rest == nullptr || doc_->draft() < 2019 || instance.as_object() == nullptr) return true;
  std::set<std::string> evaluated;
  add_evaluated(evaluated, schema, instance, depth, false);
  return std::all_of(
      instance.as_object()->begin(), instance.as_object()->end(), [&](const auto& entry) {
        return evaluated.contains(entry.first) || valid(*rest, entry.second, depth + 1);
      });
}

/// Adds the names of the properties of a valid instance that the schema evaluates. With `all`, the
/// schema's own unevaluatedProperties counts too, which evaluates all remaining properties.
void validator::add_evaluated(std::set<std::string>& names, const value& schema,
                              const value& instance, int depth, bool all) {
  if (depth > max_reference_depth) refuse(errc::unsupported, "`$ref` leads to itself without end");
  if (schema.as_object() == nullptr) return;
  const auto add = [&](const value& part) {
    if (valid(part, instance, depth + 1)) add_evaluated(names, part, instance, depth + 1, true);
  };
  if (const auto* ref = member(schema, "$ref"); ref != nullptr && ref->as_string() != nullptr)
    add(doc_->resolve(schema, *ref->as_string()));
  const auto* properties = member(schema, "properties");
  const auto* by_pattern = member(schema, "patternProperties");
  const bool others = member(schema, "additionalProperties") != nullptr ||
                      (all && member(schema, "unevaluatedProperties") != nullptr);
  for (const auto& [name, inner] : *instance.as_object()) {
    bool known = others || (properties != nullptr && member(*properties, name) != nullptr);
    if (by_pattern != nullptr && by_pattern->as_object() != nullptr)
      for (const auto& [pattern, part] : *by_pattern->as_object())
        known = known || patterns_->found_in(pattern, name);
    if (known) names.insert(name);
  }
  for (const auto* keyword : {"allOf", "anyOf", "oneOf"})
    for (const auto* part : schemas_of(schema, keyword, *doc_))
      add(*part);
  if (const auto* condition = member(schema, "if")) {
    const bool holds = valid(*condition, instance, depth + 1);
    if (holds) add(*condition);
    if (const auto* follows = member(schema, holds ? "then" : "else")) add(*follows);
  }
  if (const auto* dependent = member(schema, "dependentSchemas");
      dependent != nullptr && dependent->as_object() != nullptr)
    for (const auto& [name, needs] : *dependent->as_object())
      if (member(instance, name) != nullptr) add(needs);
}

bool validator::valid_combined(const value& schema, const value& instance, int depth) {
  const auto n_valid = [&](const char* keyword) -> std::pair<std::size_t, std::size_t> {
    const auto* list = member(schema, keyword);
    if (list == nullptr || list->as_list() == nullptr) return {0, 0};
    const auto n =
        std::count_if(list->as_list()->begin(), list->as_list()->end(),
                      [&](const auto& part) { return valid(part, instance, depth + 1); });
    return {static_cast<std::size_t>(n), list->as_list()->size()};
  };
  if (const auto [n, of] = n_valid("allOf"); n != of) return false;
  if (const auto [n, of] = n_valid("anyOf"); of > 0 && n == 0) return false;
  if (const auto [n, of] = n_valid("oneOf"); of > 0 && n != 1) return false;
  if (const auto* refused = member(schema, "not"); refused && valid(*refused, instance, depth + 1))
    return false;
  if (const auto* condition = member(schema, "if"); condition != nullptr && has_if(*doc_)) {
    const auto* then = member(schema, valid(*condition, instance, depth + 1) ? "then" : "else");
    if (then != nullptr && !valid(*then, instance, depth + 1)) return false;
  }
  return true;
}

} // namespace twill::models::grammar
