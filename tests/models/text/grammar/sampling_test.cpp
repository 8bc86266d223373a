// Answers whose tokens are drawn at random among those that a grammar's masks allow are valid by a
// validator that is independent of grammars.
#include <string>

#include "models/checkpoint/json.hpp"
#include "models/text/grammar/schema/validator.hpp"
#include "tests/catch.hpp"
#include "tests/models/text/grammar/random_answer.hpp"

using namespace twill::test;

namespace {

const char* const schemas[] = {
    R"({"type": "object", "properties": {"a": {"type": "integer", "minimum": -3, "maximum": 120}, "b": {"type":
        "string", "maxLength": 5}, "c": {"enum": [1, "x", null]}}, "required": ["a", "c"], "additionalProperties": false})",
    R"({"type": "object", "properties": {"id": {"type": "string", "format": "date"}, "x": {"type": "number",
        "multipleOf": 0.5, "exclusiveMinimum": 0, "maximum": 10}}, "required": ["id"], "patternProperties": {"^p":
        {"type": "null"}}, "additionalProperties": {"type": "boolean"}})",
    R"({"oneOf": [{"type": "integer", "minimum": 3}, {"type": "integer", "maximum": 5}, {"type": "array", "items":
        {"type": "boolean"}, "minItems": 1, "maxItems": 3}]})",
    R"({"type": "array", "contains": {"const": 7}, "items": {"type": "integer", "minimum": 0, "maximum": 9}})",
    R"({"type": "string", "pattern": "^[a-f]+(x|y\\d)$", "minLength": 3, "maxLength": 9, "not": {"pattern": "ab"}})",
    R"({"$ref": "#/$defs/n", "$defs": {"n": {"type": "object", "properties": {"v": {"type": "integer"}, "l": {"type":
        "array", "items": {"$ref": "#/$defs/n"}, "maxItems": 2}}, "required": ["v"], "additionalProperties": false}}})",
    R"({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "c": {"type": "null"}},
        "additionalProperties": false, "dependentRequired": {"a": ["b"]}, "minProperties": 1, "not": {"required":
        ["b", "c"]}})",
    R"({"type": "object", "properties": {"k": {"enum": ["n", "s"]}, "v": {}}, "required": ["k", "v"],
        "additionalProperties": false, "if": {"properties": {"k": {"const": "n"}}}, "then": {"properties": {"v":
        {"type": "integer"}}}, "else": {"properties": {"v": {"type": "string", "minLength": 2, "maxLength": 4}}}})",
    R"({"type": "array", "items": {"enum": ["a", "b", 3]}, "uniqueItems": true, "minItems": 2})",
    R"({"type": "array", "items": {"enum": [1, 2, 3, 4, 5, 6, 7]}, "uniqueItems": true, "minItems": 3,
        "maxItems": 5})",
    R"({"type": "object", "required": ["a", "b", "c", "d", "e"], "properties": {"a": {"type": "null"}, "b": {"type":
        "null"}, "c": {"type": "null"}, "d": {"type": "null"}, "e": {"type": "null"}, "f": {"type": "boolean"}},
        "additionalProperties": false})",
};

} // namespace

TEST_CASE("sampling: whatever is drawn from the masks is valid") {
  std::mt19937 random(3);
  int n_ended = 0;
  for (const std::string schema : schemas) {
    INFO(schema);
    const auto grammar = compiled(schema_spec(schema));
    REQUIRE(grammar.ok());
    const document doc(schema);
    patterns known;
    validator check(doc, known);
    for (int i = 0; i < 60; ++i) {
      const auto drawn = random_answer(grammar.value(), random);
      const auto& text = drawn.text;
      INFO(text);
      REQUIRE_FALSE(drawn.dead_end);
      if (!drawn.ended) continue;
      ++n_ended;
      const auto value = twill::models::parse_json(text, "answer");
      REQUIRE(value.ok());
      REQUIRE(check.valid(doc.root(), value.value()));
    }
  }
  CHECK(n_ended > 400);
}
