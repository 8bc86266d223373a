#include "models/text/grammar/schema/check.hpp"

#include <string>

#include "models/text/grammar/schema/document.hpp"
#include "models/text/grammar/schema/keywords.hpp"

namespace twill::models::grammar {
namespace {

class schema_checker {
public:
  explicit schema_checker(const document& doc) : doc_(doc) {}

  void check(const value& schema) const {
    if (schema.as_bool() != nullptr) return;
    if (schema.as_object() == nullptr)
      refuse(errc::bad_schema,
             "a schema must be an object, true or false (at " + doc_.pointer_to(schema) + ")");
    check_values(schema);
    for (const auto* keyword :
         {"not", "if", "then", "else", "contains", "propertyNames", "additionalProperties",
          "additionalItems", "unevaluatedItems", "unevaluatedProperties"})
      if (const auto* inner = member(schema, keyword)) check(*inner);
    for (const auto* keyword : {"allOf", "anyOf", "oneOf"})
      for (const auto* part : schemas_of(schema, keyword, doc_))
        check(*part);
    const auto items = items_of(schema, doc_);
    for (const auto* part : items.prefix)
      check(*part);
    if (items.rest != nullptr) check(*items.rest);
    for (const auto* keyword : {"properties", "patternProperties", "$defs", "definitions",
                                "dependentSchemas", "dependencies"})
      check_named(schema, keyword);
  }

private:
  /// Checks keywords whose values are not schemas.
  void check_values(const value& schema) const {
    if (const auto* type = member(schema, "type")) {
      try {
        type_names(*type);
      } catch (const refusal& r) {
        refuse(r.why.code, r.why.detail + " (at " + doc_.pointer_to(schema) + ")");
      }
    }
    if (const auto* listed = member(schema, "enum");
        listed != nullptr && listed->as_list() == nullptr)
      refuse_keyword(errc::bad_schema, doc_, schema, "enum", "must be a list");
    for (const auto* keyword : {"minLength", "maxLength", "minItems", "maxItems", "minContains",
                                "maxContains", "minProperties", "maxProperties"})
      count_of(schema, keyword, doc_);
    number_rules_of(schema, doc_);
    names_of(schema, "required", doc_);
    string_of(schema, "pattern", doc_);
    if (const auto reference = string_of(schema, "$ref", doc_)) {
      try {
        doc_.resolve(schema, *reference);
      } catch (const refusal& r) {
        if (r.why.code != errc::unsupported) throw; // the reference may point into another document
      }
    }
  }

  void check_named(const value& schema, const char* keyword) const {
    const auto* named = member(schema, keyword);
    if (named == nullptr) return;
    if (named->as_object() == nullptr)
      refuse_keyword(errc::bad_schema, doc_, schema, keyword, "must be an object of schemas");
    for (const auto& [name, inner] : *named->as_object())
      if (inner.as_list() == nullptr || keyword != std::string_view("dependencies")) check(inner);
  }

  const document& doc_;
};

} // namespace

std::optional<failure> check_schema(std::string_view schema_text) {
  try {
    const document doc(schema_text);
    schema_checker(doc).check(doc.root());
  } catch (const refusal& r) {
    if (r.why.code == errc::bad_json || r.why.code == errc::bad_schema) return r.why;
  }
  return std::nullopt;
}

} // namespace twill::models::grammar
