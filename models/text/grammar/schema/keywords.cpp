#include "models/text/grammar/schema/keywords.hpp"

#include <cmath>
#include <set>
#include <string_view>

namespace twill::models::grammar {

void refuse_keyword(errc code, const document& doc, const value& schema, const std::string& keyword,
                    const std::string& why) {
  refuse(code, "`" + keyword + "` at " + doc.pointer_to(schema) + " " + why);
}

std::vector<std::string> type_names(const value& type) {
  static const std::set<std::string> known{"null",   "boolean", "integer", "number",
                                           "string", "array",   "object"};
  std::vector<std::string> out;
  const auto add = [&out](const value& name) {
    if (name.as_string() == nullptr || !known.contains(*name.as_string()))
      refuse(errc::bad_schema,
             "`type` must name null, boolean, integer, number, string, array or object" +
                 (name.as_string() == nullptr ? "" : ", not " + *name.as_string()));
    out.push_back(*name.as_string());
  };
  if (const auto* list = type.as_list())
    for (const auto& name : *list)
      add(name);
  else
    add(type);
  return out;
}

std::optional<std::int64_t> count_of(const value& schema, const char* keyword,
                                     const document& doc) {
  const auto* v = member(schema, keyword);
  if (v == nullptr) return std::nullopt;
  const auto number = decimal_of(*v);
  if (!number || number->negative || !number->is_whole())
    refuse_keyword(errc::bad_schema, doc, schema, keyword,
                   "must be a whole number that is not negative");
  if (number->whole.size() > 15) return std::int64_t{1'000'000'000'000'000};
  return std::stoll(number->whole);
}

std::optional<std::string> string_of(const value& schema, const char* keyword,
                                     const document& doc) {
  const auto* v = member(schema, keyword);
  if (v == nullptr) return std::nullopt;
  if (v->as_string() == nullptr)
    refuse_keyword(errc::bad_schema, doc, schema, keyword, "must be a string");
  return *v->as_string();
}

std::vector<std::string> names_of(const value& schema, const char* keyword, const document& doc) {
  const auto* v = member(schema, keyword);
  if (v == nullptr) return {};
  std::vector<std::string> out;
  if (v->as_list() == nullptr)
    refuse_keyword(errc::bad_schema, doc, schema, keyword, "must be a list of property names");
  for (const auto& name : *v->as_list()) {
    if (name.as_string() == nullptr)
      refuse_keyword(errc::bad_schema, doc, schema, keyword, "must be a list of property names");
    out.push_back(*name.as_string());
  }
  return out;
}

std::vector<const value*> schemas_of(const value& schema, const char* keyword,
                                     const document& doc) {
  const auto* v = member(schema, keyword);
  if (v == nullptr) return {};
  if (v->as_list() == nullptr || v->as_list()->empty())
    refuse_keyword(errc::bad_schema, doc, schema, keyword,
                   "must be a list of schemas that is not empty");
  std::vector<const value*> out;
  for (const auto& part : *v->as_list())
    out.push_back(&part);
  return out;
}

number_rules number_rules_of(const value& schema, const document& doc) {
  number_rules out;
  const auto number = [&](const char* keyword) -> std::optional<decimal> {
    const auto* v = member(schema, keyword);
    if (v == nullptr) return std::nullopt;
    auto d = decimal_of(*v);
    if (!d) refuse_keyword(errc::bad_schema, doc, schema, keyword, "must be a number");
    return d;
  };
  const auto rounded = [&](const char* keyword) {
    const auto* v = member(schema, keyword);
    return is_rounded(*v) ? *v->as_double() : 0.0;
  };
  // In draft 4, exclusiveMinimum is a boolean that belongs to minimum.
  const auto flag = [&](const char* keyword) {
    const auto* v = member(schema, keyword);
    return v == nullptr ? nullptr : v->as_bool();
  };
  for (const bool least : {true, false}) {
    const char* exclusive = least ? "exclusiveMinimum" : "exclusiveMaximum";
    const auto* is_exclusive = flag(exclusive);
    if (const auto at = number(least ? "minimum" : "maximum"))
      out.bounds.push_back({*at, least, is_exclusive != nullptr && *is_exclusive,
                            rounded(least ? "minimum" : "maximum")});
    if (is_exclusive == nullptr)
      if (const auto at = number(exclusive))
        out.bounds.push_back({*at, least, true, rounded(exclusive)});
  }
  if (const auto multiple = number("multipleOf")) {
    if (multiple->negative || multiple->is_zero())
      refuse_keyword(errc::bad_schema, doc, schema, "multipleOf", "must be above 0");
    out.multiples.push_back(*multiple);
  }
  return out;
}

void check_exact(const value& given, const value& schema, const char* keyword,
                 const document& doc) {
  if (is_rounded(given))
    refuse_keyword(errc::unsupported, doc, schema, keyword,
                   "holds " + number_text(given) +
                       " or a number that is rounded to it: whole numbers must be below 2^63 here");
  if (const auto* list = given.as_list())
    for (const auto& inner : *list)
      check_exact(inner, schema, keyword, doc);
  if (const auto* object = given.as_object())
    for (const auto& [name, inner] : *object)
      check_exact(inner, schema, keyword, doc);
}

items_shape items_of(const value& schema, const document& doc) {
  items_shape out;
  const auto* items = member(schema, "items");
  const auto* prefix = member(schema, "prefixItems");
  if (prefix != nullptr && doc.draft() < 2020) prefix = nullptr; // unknown to earlier drafts
  if (prefix != nullptr) {
    out.prefix = schemas_of(schema, "prefixItems", doc);
    out.rest = items;
  } else if (items != nullptr && items->as_list() != nullptr) {
    for (const auto& part : *items->as_list())
      out.prefix.push_back(&part);
    out.rest = member(schema, "additionalItems");
  } else {
    out.rest = items;
  }
  return out;
}

bool has_if(const document& doc) {
  return doc.draft() >= 7;
}

void check_known(const value& schema, const document& doc) {
  static const std::set<std::string_view> refused{
      "$dynamicRef", "$recursiveRef", "unevaluatedItems", "maxContains",
      "extends",     "disallow",      "divisibleBy"};
  for (const auto& [key, inner] : *schema.as_object()) {
    if (!refused.contains(key)) continue;
    if (key == "maxContains" && member(schema, "contains") == nullptr) continue;
    refuse_keyword(errc::unsupported, doc, schema, key, "is not enforced");
  }
}

} // namespace twill::models::grammar
