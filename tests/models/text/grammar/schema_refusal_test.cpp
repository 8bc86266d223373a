#include <string>
#include <utility>

#include "models/text/grammar/schema/check.hpp"
#include "tests/catch.hpp"
#include "tests/models/text/grammar/byte_vocabulary.hpp"

using namespace twill::test;

namespace {

/// Returns the text of the refusal; fails if the schema is accepted.
std::string refused(const std::string& schema, errc code) {
  const auto text = grammar_text(schema_spec(schema));
  INFO(schema);
  REQUIRE_FALSE(text.ok());
  INFO(text.detail());
  CHECK(text.code() == code);
  return text.detail();
}

bool holds(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("schema refusal: what is not enforced is named with its place") {
  const auto unique = refused(
      R"({"type": "object", "properties": {"a/b": {"type": "array", "uniqueItems": true}}})",
      errc::unsupported);
  CHECK(holds(unique, "`uniqueItems` at #/properties/a~1b"));
  CHECK(holds(refused(R"({"type": "array", "unevaluatedItems": false})", errc::unsupported),
              "`unevaluatedItems` at #"));
  CHECK(holds(refused(R"({"$dynamicRef": "#a"})", errc::unsupported), "`$dynamicRef`"));
  CHECK(holds(refused(R"({"type": "array", "contains": {}, "maxContains": 2})", errc::unsupported),
              "`maxContains`"));
  CHECK(holds(refused(R"({"$ref": "https://example.com/other.json"})", errc::unsupported),
              "other documents"));
  CHECK(holds(refused(R"({"type": "string", "pattern": "(a)\\1"})", errc::unsupported),
              "back-reference"));
  CHECK(holds(refused(R"({"not": {"additionalProperties": false}})", errc::unsupported),
              "`additionalProperties`"));
  CHECK(holds(refused(R"({"not": {"enum": [[1], {"a": 1}]}, "type": ["array", "null"]})",
                      errc::unsupported),
              "`enum` or `const`"));
  CHECK(holds(refused(R"({"const": 18446744073709551615.0})", errc::unsupported), "`const` at #"));
  CHECK(holds(refused(R"({"enum": [1, [9.223372036854775808e18]]})", errc::unsupported), "2^63"));
  CHECK(holds(refused(R"({"enum": [{"a": [1]}], "properties": {"a": {"unevaluatedItems": false}}})",
                      errc::unsupported),
              "`unevaluatedItems`"));
  CHECK(holds(refused(R"({"type": "object", "minProperties": 3})", errc::unsupported),
              "`minProperties`"));
  CHECK(
      holds(refused(R"({"$schema": "http://json-schema.org/draft-03/schema#"})", errc::unsupported),
            "draft 3"));
}

TEST_CASE("schema refusal: a keyword of the wrong type is an error, not a guess") {
  refused("{", errc::bad_json);
  refused("[]", errc::bad_schema);
  CHECK(holds(refused(R"({"type": "any"})", errc::bad_schema), "not any"));
  CHECK(holds(refused(R"({"type": "object", "required": true})", errc::bad_schema),
              "`required` at #"));
  refused(R"({"minLength": "3"})", errc::bad_schema);
  refused(R"({"$ref": "#/$defs/missing"})", errc::bad_schema);
  refused(R"({"$ref": "#"})", errc::bad_schema);
  refused(R"({"anyOf": []})", errc::bad_schema);
  refused(R"({"pattern": "("})", errc::bad_grammar);
}

TEST_CASE("schema check: an invalid JSON Schema is distinguished from an unenforced one") {
  const std::pair<const char*, const char*> bad[] = {
      {R"({"properties": {"a": {"type": "dict"}}})", "not dict (at #/properties/a)"},
      {R"({"properties": []})", "`properties` at # must be an object of schemas"},
      {R"({"properties": {"a": 5}})", "(at #/properties/a)"},
      {R"({"properties": {"a": {"required": true}}})", "`required` at #/properties/a"},
      {R"({"items": {"anyOf": []}})", "`anyOf` at #/items"},
      {R"({"prefixItems": [{"enum": "x"}]})", "`enum` at #/prefixItems/0"},
      {R"({"additionalProperties": {"minLength": -1}})", "`minLength`"},
      {R"({"$defs": {"d": {"minimum": "1"}}})", "`minimum` at #/$defs/d"},
      {R"({"not": {"pattern": 5}})", "`pattern` at #/not"},
      {R"({"$ref": "#/$defs/none"})", "#/$defs/none"},
      {"[]", "a schema must be an object"},
      {"{", "not JSON"}};
  for (const auto& [schema, part] : bad) {
    const auto wrong = check_schema(schema);
    INFO(schema);
    REQUIRE(wrong);
    INFO(wrong->detail);
    CHECK(holds(wrong->detail, part));
  }
  for (const auto* schema :
       {"true", "{}", R"({"type": "array", "uniqueItems": true, "unevaluatedItems": false})",
        R"({"properties": {"type": {"type": "string"}, "required": {}, "items": false}})",
        R"({"$ref": "http://elsewhere/x"})", R"({"enum": [{"type": 5}], "default": {"items": 1}})",
        R"({"dependencies": {"a": ["b"], "c": {"minItems": 1}}})", R"({"pattern": "(?<=a)b"})",
        R"({"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 1,
            "exclusiveMinimum": true, "items": [{}], "additionalItems": false})"}) {
    INFO(schema);
    CHECK_FALSE(check_schema(schema));
  }
}

TEST_CASE("schema refusal: a schema that nothing satisfies") {
  refused("false", errc::unsatisfiable);
  refused(R"({"type": "integer", "minimum": 3, "maximum": 2})", errc::unsatisfiable);
  refused(R"({"type": "object", "properties": {"a": false}, "required": ["a"]})",
          errc::unsatisfiable);
  refused(R"({"allOf": [{"type": "string"}, {"type": "null"}]})", errc::unsatisfiable);
  refused(
      R"({"$defs": {"n": {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}, "required": ["n"]}},
             "$ref": "#/$defs/n"})",
      errc::unsatisfiable);
}

TEST_CASE("schema refusal: what explodes ends at a limit") {
  std::string any_of = "{\"type\": \"object\", \"allOf\": [";
  for (int i = 0; i < 20; ++i)
    any_of += std::string(i > 0 ? ", " : "") + "{\"anyOf\": [{\"required\": [\"a" +
              std::to_string(i) + "\"]}, {\"required\": [\"b" + std::to_string(i) + "\"]}]}";
  refused(any_of + "]}", errc::too_large);
  refused(R"({"type": "string", "pattern": "(.*a.{30}){3}", "minLength": 5})", errc::too_large);
}
