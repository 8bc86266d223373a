// Which JSON texts a schema's grammar accepts and refuses: the lists `valid` and `invalid`.
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/models/text/grammar/byte_vocabulary.hpp"

using namespace twill::test;

namespace {

void check(const std::string& schema, const std::vector<std::string>& valid,
           const std::vector<std::string>& invalid, bool closed = false) {
  INFO(schema);
  const auto grammar = compiled(schema_spec(schema, closed));
  INFO((grammar.ok() ? "" : grammar.detail()));
  REQUIRE(grammar.ok());
  for (const auto& text : valid) {
    INFO("valid: " << text);
    CHECK(passes(grammar.value(), text));
  }
  for (const auto& text : invalid) {
    INFO("invalid: " << text);
    CHECK_FALSE(passes(grammar.value(), text));
  }
}

} // namespace

TEST_CASE("schema: types, and white space between tokens") {
  check(R"({"type": ["integer", "null"]})", {"0", "-12", "null"}, {"1.5", "\"1\"", "01", "true"});
  check(R"({"type": "array", "items": {"type": "boolean"}})", {"[]", "[ true ,\n false ]"},
        {"[1]", "[true,]"});
  check("true", {"1", "{}", "[null]"}, {"", "{"});
}

TEST_CASE("schema: objects keep required, optional and other properties apart") {
  const std::string schema =
      R"({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
                                "required": ["a"], "additionalProperties": {"type": "null"}})";
  check(schema,
        {R"({"a": 1})", R"({"b": "x", "a": 1})", R"({"x": null, "a": 1, "y": null})",
         R"({"ab": null, "a": 1})"},
        {R"({"b": "x"})", R"({"a": "x"})", R"({"a": 1, "x": 1})", R"({"a": 1, "a": 2})",
         R"({"\u0061": null, "a": 1})", "{}"});
  check(R"({"properties": {"a": {}}, "type": "object", "additionalProperties": false})",
        {"{}", R"({"a": 0})"}, {R"({"b": 0})"});
  check(R"({"type": "object", "properties": {"a": {}}})", {R"({"b": 0})"}, {}, false);
  check(R"({"type": "object", "properties": {"a": {}}})", {R"({"a": 0})"}, {R"({"b": 0})"}, true);
  // `true` closes only objects that declare properties.
  check(R"({"type": "object", "properties": {"a": {"type": "object"}}})", {R"({"a": {"b": 0}})"},
        {R"({"a": {}, "b": 0})"}, true);
  check(R"({"type": "object", "properties": {"a": {}}, "additionalProperties": true})",
        {R"({"b": 0})"}, {}, true);
  check(R"({"type": "object", "patternProperties": {"^a": {}}})", {R"({"ab": 0})"}, {R"({"b": 0})"},
        true);
}

TEST_CASE("schema: many properties come in their order, or required ones first") {
  check(R"({"type": "object", "additionalProperties": false, "required": ["e", "b"], "properties":
           {"a": {}, "b": {}, "c": {}, "d": {}, "e": {}, "f": {}}})",
        {R"({"b": 0, "e": 0})", R"({"a": 0, "b": 0, "e": 0, "f": 0})",
         R"({"e": 0, "b": 0, "a": 0, "f": 0})"},
        {R"({"b": 0})", R"({"a": 0, "e": 0})", R"({"e": 0, "b": 0, "b": 0})", "{}"});
}

TEST_CASE("schema: the number of properties") {
  check(
      R"({"type": "object", "properties": {"a": {}, "b": {}, "c": {}}, "additionalProperties": false,
           "minProperties": 2, "maxProperties": 2})",
      {R"({"a": 0, "c": 0})"}, {R"({"a": 0})", R"({"a": 0, "b": 0, "c": 0})"});
  check(R"({"type": "object", "minProperties": 1})", {R"({"x": 0})"}, {"{}"});
  check(R"({"type": "object", "maxProperties": 1})", {"{}", R"({"x": 0})"},
        {R"({"x": 0, "y": 0})"});
}

TEST_CASE("schema: patternProperties and propertyNames, also together with properties") {
  check(
      R"({"type": "object", "properties": {"id": {"type": "integer"}, "x-a": {"minimum": 3}}, "patternProperties":
           {"^x-": {"type": "integer"}, "y$": {"maximum": 9}}, "additionalProperties": false})",
      {R"({"id": 1, "x-b": 2, "x-y": 4, "ay": "s"})", R"({"x-a": 4})"},
      {R"({"x-b": "s"})", R"({"x-y": 10})", R"({"x-a": 2})", R"({"x-a": "s"})", R"({"z": 1})"});
  check(R"({"type": "object", "propertyNames": {"pattern": "^[a-z]+$", "maxLength": 3}})",
        {R"({"abc": 1})"}, {R"({"abcd": 1})", R"({"A": 1})", R"({"": 1})"});
}

TEST_CASE("schema: strings by length and pattern count characters, escapes included") {
  check(R"({"type": "string", "minLength": 1, "maxLength": 3})",
        {R"("a")", R"("é北🦊")", R"("a\nb")", R"("\"\\\/")"},
        {R"("")", R"("abcd")", R"("a\nbc")", "\"a\nb\"", R"("\x")"});
  check(R"({"type": "string", "minLength": 2})", {R"("ab")", R"("\u00e9x")"},
        {R"("a")", R"("\u00e9")"});
  check(R"({"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 4})",
        {R"("ab")", R"("abcd")"}, {R"("a")", R"("abcde")", R"("aB")"});
  check(R"({"type": "string", "pattern": "a.*\\.txt$", "maxLength": 8})",
        {R"("a.txt")", R"("xxa1.txt")"}, {R"("b.txt")", R"("xxxa1.txt")"});
  check(R"({"type": "string", "pattern": "^.{1,255}$"})", {R"("x")"}, {R"("")"});
  check(R"({"type": "string", "maxLength": 300})", {"\"" + std::string(300, 'x') + "\""},
        {"\"" + std::string(301, 'x') + "\""});
}

TEST_CASE("schema: patterns that count many characters are exact") {
  const auto quoted = [](std::size_t n, const char* c = "a") {
    std::string out = "\"";
    for (; n > 0; --n)
      out += c;
    return out + '"';
  };
  check(R"({"type": "string", "pattern": "^[a-z ]{1,200}$"})",
        {quoted(1), quoted(127), quoted(128), quoted(129), quoted(200, " ")},
        {quoted(0), quoted(201), quoted(3, "A"), quoted(2, "\\n")});
  check(R"({"type": "string", "pattern": "^x?(ab|[^\"a]{20,300})-\\d{17}$"})",
        {R"("ab-01234567890123456")",
         R"("x)" + quoted(20, "é").substr(1, 40) + R"(-01234567890123456")",
         R"(")" + quoted(300, "\\\\").substr(1, 600) + R"(-01234567890123456")"},
        {R"("ab-0123456789012345")", R"("ab-012345678901234567")",
         R"(")" + quoted(19, "b").substr(1, 19) + R"(-01234567890123456")",
         R"("y)" + quoted(301, "b").substr(1, 301) + R"(-01234567890123456")"});
  // Nested counts, lookahead, and a length beside a pattern are compiled in other ways.
  check(R"({"type": "string", "pattern": "^([ab]{1,30}c){2}$"})", {R"("acbbc")"}, {R"("ac")"});
  check(R"({"type": "string", "pattern": "^(?!a)[a-z]{1,40}$"})", {R"("ba")"}, {R"("ab")"});
  check(R"({"type": "string", "pattern": "^[a-z]{1,200}$", "maxLength": 20})", {quoted(20)},
        {quoted(21)});
  check(R"({"type": "string", "pattern": "^[a-z]{1,2000}$"})", {quoted(1500)}, {quoted(3, "A")});
}

TEST_CASE("schema: numbers in bounds") {
  check(R"({"type": "integer", "minimum": -3, "exclusiveMaximum": 12})", {"-3", "0", "11"},
        {"-4", "12", "100", "1.5"});
  check(R"({"type": "number", "minimum": 0, "maximum": 0.5})", {"0", "0.25", "0.5000"},
        {"0.51", "-0.1", "1"});
  check(R"({"$schema": "http://json-schema.org/draft-04/schema#", "type": "number", "minimum": 0,
           "exclusiveMinimum": true})",
        {"0.1"}, {"0", "-1"});
  check(R"({"type": "integer", "multipleOf": 5, "minimum": 7})", {"10", "115"}, {"5", "12"});
  check(R"({"type": "number", "multipleOf": 0.01})", {"1.25", "3"}, {"1.255"});
}

TEST_CASE("schema: arrays by position, number and contents") {
  check(
      R"({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": false})",
      {"[]", "[1]", R"([1, "a"])"}, {R"(["a"])", R"([1, "a", 2])"});
  check(
      R"({"$schema": "http://json-schema.org/draft-07/schema#", "type": "array", "items": [{"type": "integer"}],
           "additionalItems": {"type": "null"}, "minItems": 2, "maxItems": 3})",
      {"[1,null]", "[1,null,null]"}, {"[1]", "[1,2]", "[1,null,null,null]"});
  check(R"({"type": "array", "contains": {"const": 7}, "items": {"type": "integer"}})",
        {"[7]", "[1,7,2]"}, {"[]", "[1]", R"([7,"x"])"});
  check(
      R"({"type": "array", "items": {"enum": ["a", "b", 3]}, "uniqueItems": true, "minItems": 1})",
      {R"(["a"])", R"([3,"b","a"])"}, {"[]", R"(["a","a"])", R"([3,"b","a","b"])"});
  const std::string many =
      R"({"type": "array", "items": {"enum": [1, 2, 3, 4, 5, 6, 7, "a"]}, "uniqueItems": true)";
  check(many + "}", {"[]", "[1]", R"([ 2 , 7 , "a" ])", "[1,2,3,4,5,6,7,\"a\"]"},
        {"[1,1]", "[2,3,2]", "[1,]", "[8]"});
  check(many + R"(, "minItems": 2, "maxItems": 3})", {"[1,7]", R"([1,2,"a"])"},
        {"[]", "[1]", "[1,2,3,4]", "[1,2,2]"});
  check(many + R"(, "minItems": 7})", {"[1,2,3,4,5,6,7]", R"([2,3,4,5,6,7,"a"])"},
        {"[1,2,3,4,5,6]", "[2,3,4,5,6,7]"});
}

TEST_CASE("schema: enum and const, filtered by what else must hold") {
  check(R"({"enum": [1, "é", {"a": [true]}, 2.0]})",
        {"1", R"("é")", "\"\\u00e9\"", R"({ "a" : [true] })", "2.0", "2"}, {"3", "1.5"});
  check(R"({"enum": ["ab", "abc", 5], "type": "string", "minLength": 3})", {R"("abc")"},
        {R"("ab")", "5"});
}

TEST_CASE("schema: allOf and siblings are conjunctions") {
  check(
      R"({"allOf": [{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
                     {"properties": {"a": {"minimum": 3}, "b": {"type": "null"}}, "required": ["b"]}]})",
      {R"({"a": 3, "b": null})"}, {R"({"a": 2, "b": null})", R"({"a": 3})", R"({"b": null})"});
  check(R"({"type": "string", "allOf": [{"pattern": "a"}, {"pattern": "b"}]})",
        {R"("ab")", R"("xbxa")"}, {R"("a")"});
  check(
      R"({"type": "object", "properties": {"k": {"type": "string"}}, "anyOf": [{"required": ["k"]},
           {"required": ["l"]}]})",
      {R"({"k": "x"})", R"({"l": 1})", R"({"k": "x", "l": 1})"}, {"{}", R"({"k": 1, "l": 1})"});
}

TEST_CASE("schema: oneOf excludes values of two branches") {
  check(R"({"oneOf": [{"type": "integer"}, {"type": "string"}]})", {"1", R"("a")"}, {"1.5"});
  check(R"({"oneOf": [{"type": "integer", "minimum": 3}, {"type": "integer", "maximum": 5}]})",
        {"2", "6"}, {"3", "5"});
  check(R"({"type": "object", "properties": {"a": {}, "b": {}}, "additionalProperties": false,
           "oneOf": [{"required": ["a"]}, {"required": ["b"]}]})",
        {R"({"a": 1})", R"({"b": 1})"}, {"{}", R"({"a": 1, "b": 1})"});
  check(
      R"({"oneOf": [{"type": "object", "properties": {"t": {"const": "x"}, "v": {"type": "integer"}}, "required": ["t"]},
                     {"type": "object", "properties": {"t": {"const": "y"}}, "required": ["t"]}]})",
      {R"({"t": "x", "v": 1})", R"({"t": "y", "v": "s"})"},
      {R"({"t": "x", "v": "s"})", R"({"t": "z"})"});
}

TEST_CASE("schema: not, if and dependencies by case distinction") {
  check(R"({"not": {"type": "string"}})", {"1", "{}", "null"}, {R"("a")"});
  check(R"({"type": "string", "not": {"enum": ["a", "bc"]}})", {R"("ab")", R"("b")"},
        {R"("a")", R"("bc")"});
  check(R"({"type": "object", "not": {"required": ["a", "b"]}})",
        {"{}", R"({"a": 1})", R"({"b": 1, "c": 2})"}, {R"({"a": 1, "b": 2})"});
  check(
      R"({"type": "object", "properties": {"k": {"enum": ["n", "s"]}}, "required": ["k"], "if": {"properties": {"k":
           {"const": "n"}}}, "then": {"properties": {"v": {"type": "number"}}}, "else": {"properties": {"v":
           {"type": "string"}}}})",
      {R"({"k": "n", "v": 1})", R"({"k": "s", "v": "x"})", R"({"k": "s"})"},
      {R"({"k": "n", "v": "x"})", R"({"k": "s", "v": 1})"});
  check(
      R"({"type": "object", "dependentRequired": {"a": ["b"]}, "properties": {"a": {}, "b": {}}})",
      {"{}", R"({"b": 1})", R"({"a": 1, "b": 1})"}, {R"({"a": 1})"});
}

TEST_CASE("schema: references, also recursive ones, by pointer, anchor and $id") {
  check(
      R"({"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"},
           "v": {"$ref": "#int"}}, "required": ["v"], "additionalProperties": false}, "i": {"$anchor": "int",
           "type": "integer"}}})",
      {R"({"v": 1})", R"({"next": {"v": 2}, "v": 1})"},
      {R"({"next": {}, "v": 1})", R"({"v": "x"})"});
  check(
      R"({"properties": {"a": {"$ref": "t"}}, "type": "object", "$defs": {"x": {"$id": "t", "$ref": "#/$defs/y",
           "$defs": {"y": {"type": "null"}}}}})",
      {R"({"a": null})"}, {R"({"a": 1})"});
  check(
      R"({"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/a", "type": "string",
           "definitions": {"a": {"type": "integer"}}})",
      {"1"}, {R"("x")"});
}

TEST_CASE("schema: formats are enforced, unknown ones are annotations") {
  check(R"({"type": "string", "format": "date-time"})", {R"("2022-01-01T12:00:00Z")"},
        {R"("2022-01-01T12:00:00")"});
  check(R"({"type": "string", "format": "grid"})", {R"("x")"}, {});
}

TEST_CASE("schema: a bound of 2^63 or more is drawn in by what reading may have rounded") {
  check(R"({"type": "integer", "maximum": 18446744073709551615})", {"18446744073709540000", "-5"},
        {"18446744073709552000", "18446744073709551616", "18446744073709552640"});
  check(R"({"type": "integer", "minimum": 9223372036854775808})", {"9223372036854790000"},
        {"9223372036854775807", "5"});
  check(R"({"type": "integer", "not": {"maximum": 18446744073709551615}})",
        {"18446744073709570000"}, {"18446744073709551615", "18446744073709551614"});
  check(R"({"maximum": 18446744073709551615, "enum": [9223372036854775807, 1]})",
        {"9223372036854775807"}, {"2"});
  check(R"({"const": 18446744073709551615})", {"18446744073709551615"},
        {"18446744073709551616", "18446744073709551614", "18446744073709552000"});
  check(R"({"type": "integer", "maximum": 18446744073709551615})", {"18446744073709551615"},
        {"18446744073709551616"});
}

TEST_CASE("schema: lengths count an escaped pair of surrogates as one character") {
  check(R"({"type": "string", "minLength": 2})",
        {R"("\ud83d\ude00\ud83d\ude00")", R"("a\uD83D\uDE00")", R"("\u0041\u00e9")"},
        {R"("\ud83d\ude00")", R"("\ud83d")"});
  // A class that excludes an ASCII character does not accept its escape either.
  check(R"({"type": "string", "pattern": "^[^a]{2,}$", "minLength": 3})",
        {R"("\u00e9bc")", R"("bcd")"}, {R"("\u0061bc")", R"("abc")", R"("\ud83d\ude00x")"});
}

TEST_CASE("schema: what stands inside `not` evaluates no property") {
  check(
      R"({"not": {"not": {"properties": {"a": {"type": "integer"}}}}, "unevaluatedProperties": false,
           "properties": {"b": {}}, "type": "object"})",
      {"{}", R"({"b": 1})"}, {R"({"a": 1})"});
  check(
      R"({"type": "object", "unevaluatedProperties": false, "allOf": [{"properties": {"a": {}}}]})",
      {R"({"a": 1})"}, {R"({"b": 1})"});
}

TEST_CASE("schema: const and enum are filtered by unevaluatedProperties") {
  check(
      R"({"enum": [{"a": 1}, {"b": 1}, {"c": 1}, 3], "unevaluatedProperties": false,
           "properties": {"a": {}}, "anyOf": [{"properties": {"c": {"const": 1}}}, true]})",
      {R"({"a": 1})", R"({"c": 1})", "3"}, {R"({"b": 1})"});
  check(R"({"enum": [{"b": {"x": 1}}, 1], "properties": {"b": {"unevaluatedProperties": false}}})",
        {"1"}, {R"({"b": {"x": 1}})"});
}

TEST_CASE("schema: keywords of later drafts say nothing in earlier ones") {
  const std::string draft7 = R"({"$schema": "http://json-schema.org/draft-07/schema#", )";
  const std::string draft4 = R"({"$schema": "http://json-schema.org/draft-04/schema#", )";
  check(draft7 + R"("type": "array", "contains": {"const": 1}, "minContains": 0})", {"[1]"},
        {"[]", "[2]"});
  check(draft7 + R"("type": "object", "dependentRequired": {"a": ["b"]}})", {R"({"a": 1})"}, {});
  check(draft7 + R"("oneOf": [{"type": "object", "minContains": 2}, {"type": "array"}]})", {"{}"},
        {"1"});
  check(draft4 + R"("type": "integer", "not": {"not": {"const": 1}}})", {"1", "2"}, {"1.5"});
  check(draft4 + R"("type": "object", "properties": {"const": {"type": "null"}}})",
        {R"({"const": null})"}, {R"({"const": 1})"});
}

TEST_CASE("schema: formats of names that are too long, of addresses and of expressions") {
  const std::string label(63, 'a');
  const auto twice = "\"" + label + "." + label + ".b\"";
  const auto name = label + "." + label + "." + label;
  check(R"({"type": "string", "format": "hostname"})",
        {R"("a.b-c.example.com")", twice, "\"" + name + "\""},
        {"\"" + name + "." + label + "\"", R"("-a")", "\"" + label + "a\"", R"("a..b")"});
  check(R"({"type": "string", "format": "uri"})",
        {R"("http://[::1]:80/a")", R"("http://a.b/?c#d")"},
        {R"("http://[.]")", R"("http://[1:2]/")"});
  check(R"({"type": "string", "format": "regex"})",
        {R"("^[a-z]+$")", R"("(ab|c(d)?){1,3}\\d*")", R"("")"},
        {R"("(")", R"("a**")", R"("[z-a]")", R"("\\")", R"("a{3,1}")", R"("*")"});
}

TEST_CASE("schema: optional properties of larger objects come to an end") {
  std::string many = R"({"a": 1)";
  for (int i = 0; i < 6; ++i)
    many += R"(, "a": 1)";
  check(R"({"type": "object", "additionalProperties": false, "properties":
           {"a": {}, "b": {}, "c": {}, "d": {}, "e": {}, "f": {}}})",
        {R"({"f": 1, "e": 1, "d": 1, "c": 1, "b": 1, "a": 1})", "{}", R"({"c": 1, "a": 2})"},
        {many + "}"});
  check(R"({"type": "object", "additionalProperties": false, "required": ["f"], "properties":
           {"a": {}, "b": {}, "c": {}, "d": {}, "e": {}, "f": {}}})",
        {R"({"e": 1, "d": 1, "f": 1, "c": 1, "b": 1, "a": 1})"}, {many + R"(, "f": 1})"});
}

TEST_CASE("schema: fixed control characters, anchors below such names, nested identifiers") {
  check(R"({"const": "a\u0000\u001f"})", {R"("a\u0000\u001f")"}, {R"("a")"});
  check(R"({"properties": {"enum": {"$anchor": "e", "type": "null"}, "x": {"$ref": "#e"}}})",
        {R"({"x": null})"}, {R"({"x": 1})"});
  check(R"({"$id": "https://example.com/a/root.json", "$ref": "https://example.com/a/item.json",
           "$defs": {"i": {"$id": "item.json", "type": "null"}}})",
        {"null"}, {"1"});
  check(R"({"$id": "https://example.com/a/root.json", "$ref": "/b/item.json",
           "$defs": {"i": {"$id": "https://example.com/b/item.json", "$ref": "other.json"},
                     "o": {"$id": "/b/other.json", "type": "null"}}})",
        {"null"}, {"1"});
}
