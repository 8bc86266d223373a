#include <cmath>
#include <limits>
#include <string>

#include "config/base/json_text.hpp"
#include "models/checkpoint/json.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/temp_file.hpp"
#include "tests/paths.hpp"
#include "tests/support/json.hpp"

using namespace twill::models;
using twill::value;
namespace test = twill::test;

namespace {

value parsed(const std::string& text) {
  auto v = parse_json(text, "text");
  if (!v.ok()) FAIL(v.detail());
  return v.value();
}

std::string refusal(const std::string& text) {
  auto v = parse_json(text, "a.json");
  REQUIRE_FALSE(v.ok());
  CHECK(v.code() == errc::bad_format);
  return v.detail();
}

} // namespace

TEST_CASE("JSON of every type becomes a value with its keys in order") {
  const value v =
      parsed(R"({"z": [1, -2, 2.5, 1e3, true, null], "a": {"b": "c\u00e9\n"}, "m": []})");
  const value expected =
      twill::value_object{{"z", twill::value_list{1, -2, 2.5, 1000.0, true, nullptr}},
                          {"a", twill::value_object{{"b", "c\xc3\xa9\n"}}},
                          {"m", twill::value_list{}}};
  CHECK(v == expected);
}

TEST_CASE("numbers are read as Python's json does, to the last digit", "[golden]") {
  const value golden = test::read_json_file(test::golden_dir() + "/json_numbers.json");
  for (const value& pair : test::list_of(golden)) {
    const std::string& given = test::text_of(test::list_of(pair)[0]);
    INFO(given);
    CHECK(twill::to_json(parsed("[" + given + "]")) ==
          "[" + test::text_of(test::list_of(pair)[1]) + "]");
  }
}

TEST_CASE("whole numbers become int64 where they fit, else their digits") {
  CHECK(parsed("9223372036854775807") == value(INT64_MAX));
  CHECK(parsed("-9223372036854775808") == value(INT64_MIN));
  CHECK(parsed("9223372036854775808") == value(twill::big_integer{"9223372036854775808"}));
  CHECK(parsed("-9223372036854775809") == value(twill::big_integer{"-9223372036854775809"}));
  CHECK(parsed("-0") == value(0));
  CHECK(parsed("1.0") == value(1.0));
}

TEST_CASE("of equal keys the last wins, at the place of the first") {
  const value expected = twill::value_object{{"a", 3}, {"b", 2}, {"c", 5}};
  CHECK(parsed(R"({"a": 1, "b": 2, "a": 3, "c": 4, "c": 5})") == expected);
}

TEST_CASE("JSON errors name the text and the line") {
  CHECK(refusal("{\n\"a\": 1,\n\"b\": x}").find("a.json:3: ") == 0);
  CHECK(refusal("[1, 2").find("a.json:1: ") == 0);
  CHECK(refusal("").find("a.json") == 0);
  CHECK(refusal("{} {}").find("a.json:1: ") == 0);
  CHECK(refusal("\"\xff\"").find("a.json:1: ") == 0);
  CHECK(refusal("[1e999]").find("a.json:1: ") == 0);
}

TEST_CASE("the numbers that Python writes beside JSON are read from files, and from files alone") {
  // json.dumps({"a": nan, "b": [inf, -inf, None, 1.5], "NaN": 'Infinity "NaN" \\', ...})
  const std::string text =
      R"({"a": NaN, "b": [Infinity, -Infinity, null, 1.5], "NaN": "Infinity \"NaN\" \\",)"
      "\n\"n\": {\"null\": null, \"x\": NaN, \"a\": NaN, \"a\": null}}";
  const test::temp_file file(text);
  const auto read = read_json_file(file.path(), 1 << 20);
  INFO((read.ok() ? "" : read.detail()));
  REQUIRE(read.ok());
  const value& v = read.value();
  CHECK(std::isnan(*v.find("a")->as_double()));
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(*v.find("b") == value(twill::value_list{infinity, -infinity, nullptr, 1.5}));
  CHECK(*v.find("NaN") == value("Infinity \"NaN\" \\"));
  CHECK(v.find("n")->find("null")->is_null());
  CHECK(std::isnan(*v.find("n")->find("x")->as_double()));
  CHECK(v.find("n")->find("a")->is_null());
  CHECK(refusal(text).find("a.json:1: ") == 0);
}

TEST_CASE("words that Python does not write stay errors, with their lines") {
  for (const char* text : {"{\"a\": NaN,\n\"b\": nan}", "[NaN,\ninfinity]", "[NaN\n- Infinity]",
                           "[NaN,\n+Infinity]", "[NaN,\nNaNN]", "[NaN,\n-Infinit]", "[NaN,\nxNaN]",
                           "[NaN,\n\"Inf", "[NaN,\n\"\\", "[NaN,\n-NaN]", "[NaN,\n1NaN]"}) {
    CAPTURE(text);
    const test::temp_file file(text);
    const auto read = read_json_file(file.path(), 1 << 20);
    REQUIRE_FALSE(read.ok());
    CAPTURE(read.detail());
    CHECK(read.detail().find(file.path() + ":2: ") == 0);
  }
  const test::temp_file deep(std::string(100000, '[') + "NaN");
  CHECK(read_json_file(deep.path(), 1 << 20).detail().find("levels") != std::string::npos);
}

TEST_CASE("JSON that nests without end is refused in constant stack") {
  const std::string most(static_cast<std::size_t>(max_json_depth), '[');
  CHECK(parse_json(most + std::string(most.size(), ']'), "x").ok());
  CHECK(refusal(std::string(1000000, '[')).find("nested deeper than 128") != std::string::npos);
  std::string objects;
  for (int i = 0; i < 200000; ++i)
    objects += "{\"a\":";
  CHECK(refusal(objects).find("nested deeper") != std::string::npos);
}

TEST_CASE("a JSON file is read whole, and refused above its limit") {
  const test::temp_file file("{\"a\": 1}");
  CHECK(read_json_file(file.path(), 100).value() == value(twill::value_object{{"a", 1}}));
  CHECK(read_json_file(file.path(), 7).code() == errc::bad_format);
  CHECK(read_json_file(file.path() + "-absent", 7).code() == errc::file_unreadable);
}
