#include "net/protocol/json/json_parse.hpp"

#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <string>

#include "config/base/json_text.hpp"
#include "net/protocol/json/fields.hpp"
#include "net/protocol/json/json_writer.hpp"
#include "net/protocol/json/utf8.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/support/json.hpp"

using namespace twill;
using namespace twill::net;

namespace {

std::string error_of(std::string_view text) {
  const auto parsed = parse_json(text);
  return parsed.ok() ? "" : parsed.code().message;
}

std::string written(const value& v) {
  std::string out;
  json_writer(out).add(v);
  return out;
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("JSON text becomes the same text again") {
  const std::string text =
      R"({"a":[1,-2,3.5,true,false,null],"b":{"c":"x\"\\\n\u0001é😀"},"d":[],"e":{}})";
  const auto parsed = parse_json(text);
  REQUIRE(parsed.ok());
  CHECK(written(parsed.value()) == text);
}

TEST_CASE("Numbers are read and written as Python's json does, to the last digit", "[golden]") {
  const value golden = test::read_json_file(test::golden_dir() + "/json_numbers.json");
  for (const value& pair : test::list_of(golden)) {
    const auto& given = test::text_of(test::list_of(pair)[0]);
    const auto& expected = test::text_of(test::list_of(pair)[1]);
    INFO(given);
    for (const std::string& text :
         {"[" + given + "]", "{\"a\":" + given + "}", " " + given + " "}) {
      const auto parsed = parse_json(text);
      REQUIRE(parsed.ok());
      const std::string got = written(parsed.value());
      CHECK(got == (text[0] == '['   ? "[" + expected + "]"
                    : text[0] == '{' ? "{\"a\":" + expected + "}"
                                     : expected));
      CHECK(to_json(parsed.value()) == got);
    }
  }
}

TEST_CASE("Every double reads back as itself, however many digits spell it") {
  std::mt19937_64 random(5);
  for (int i = 0; i < 20'000; ++i) {
    const auto number = std::bit_cast<double>(random());
    if (!std::isfinite(number)) continue;
    char text[64];
    std::snprintf(text, sizeof text, i % 2 == 0 ? "%.17g" : "%.24e", number);
    const auto parsed = parse_json(text);
    INFO(text);
    REQUIRE(parsed.ok());
    REQUIRE(parsed.value().as_number().has_value());
    REQUIRE(*parsed.value().as_number() == number);
  }
}

TEST_CASE("Whole numbers keep their digits, up to the range of a double") {
  std::mt19937_64 random(6);
  for (std::size_t n = 1; n <= 308; ++n) {
    std::string digits(1, static_cast<char>('1' + random() % 9));
    while (digits.size() < n)
      digits += static_cast<char>('0' + random() % 10);
    for (const std::string& text : {digits, "-" + digits}) {
      const auto parsed = parse_json(text);
      REQUIRE(parsed.ok());
      CHECK(written(parsed.value()) == text);
      if (n != 19) CHECK((n < 19) == (parsed.value().as_int() != nullptr));
    }
  }
  for (const auto* sign : {"", "-"})
    CHECK(error_of(sign + std::string(310, '9')) == "body must hold numbers that fit a double");
  CHECK(!parse_json("[" + std::string(1 << 20, '9') + "]").ok());
  for (const auto* field : {"temperature", "top_k", "max_tokens"}) {
    const auto body = parse_json("{\"" + std::string(field) + "\":" + std::string(300, '9') + "}");
    fields from(body.value());
    float real = 0;
    std::int32_t whole = 0;
    if (std::string_view(field) == "temperature")
      from.read(field, real);
    else
      from.read(field, whole, 0, 100);
    CHECK(!from.ok());
  }
}

TEST_CASE("JSON that nests too deeply is refused with the limit") {
  const std::string deep = std::string(65, '[') + std::string(65, ']');
  CHECK(error_of(deep.substr(1, 128)) == "");
  CHECK(contains(error_of(deep), "body must have at most 64 objects and lists within each other"));
}

TEST_CASE("Broken JSON is refused and the position named") {
  CHECK(contains(error_of("{\"a\":"), "at byte 5 (line 1, column 6)"));
  CHECK(contains(error_of("{\n  \"a\": x}"), "line 2"));
  CHECK(contains(error_of("{} {}"), "at byte 3"));
  for (const auto* text : {"", "{", "[1,]", "{\"a\":NaN}", "[Infinity]", "[-Infinity]", "{'a':1}",
                           "[1e999]", "// c\n{}", "\"\n\"", "[01]", "nul"})
    CHECK(!parse_json(text).ok());
}

TEST_CASE("Byte order marks and lone surrogates are named") {
  CHECK(contains(error_of("\xef\xbb\xbf{}"), "without a byte order mark, got one (EF BB BF)"));
  for (const auto* text : {"\xff\xfe{", "\xfe\xff{"})
    CHECK(contains(error_of(text), "got the byte order mark of UTF-16"));
  for (const std::string text : {R"("\ud83d")", R"("\udc00")", R"(["\ud83d\ud83d"])",
                                 R"({"\ud800x":1})", R"("\ud83d\n")", R"("\udc00\ud83d")"}) {
    INFO(text);
    CHECK(contains(error_of(text), "an escape of a lone surrogate (\\ud800 to \\udfff)"));
    CHECK(contains(error_of(text), " at byte "));
  }
  CHECK(error_of(R"("\ud83d\ude00")") == "");
  CHECK(!contains(error_of(R"("\ug")"), "surrogate"));
}

TEST_CASE("Ill-formed UTF-8 is refused as such") {
  for (const auto* text : {"\"\xff\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"",
                           "\"abcdefghijk\xe2\x82\""}) {
    const auto parsed = parse_json(text);
    REQUIRE(!parsed.ok());
    CHECK(std::get<errc>(parsed.code().code) == errc::bad_utf8);
    CHECK(contains(parsed.code().message, "at byte"));
  }
}

TEST_CASE("Nesting is bounded") {
  CHECK(parse_json(std::string(60, '[') + std::string(60, ']')).ok());
  CHECK(!parse_json(std::string(100000, '[') + std::string(100000, ']')).ok());
}

TEST_CASE("The number of values is bounded, commas in text are not") {
  std::string many = "[1";
  for (int i = 0; i < 2'000'000; ++i)
    many += ",1";
  CHECK(error_of(many + "]") == "body must hold at most 2000000 JSON values, got more");
  CHECK(parse_json("[\"\\\"" + std::string(3'000'000, ',') + "\"]").ok());
}

TEST_CASE("The last of duplicate keys wins") {
  const auto parsed = parse_json(R"({"a":1,"a":2})");
  REQUIRE(parsed.ok());
  CHECK(*parsed.value().find("a") == value(2));
  std::string many = "{\"z\":0";
  for (int i = 0; i < 300; ++i)
    many += ",\"k" + std::to_string(i % 100) + "\":" + std::to_string(i);
  const auto merged = parse_json(many + "}");
  REQUIRE(merged.ok());
  REQUIRE(merged.value().as_object()->size() == 101);
  CHECK(merged.value().as_object()->at(1) == std::pair<std::string, value>("k0", value(200)));
  CHECK(merged.value().as_object()->at(100) == std::pair<std::string, value>("k99", value(299)));
}

TEST_CASE("Writing never produces invalid JSON") {
  std::string out;
  json_writer json(out);
  json.begin_array()
      .add(std::numeric_limits<double>::infinity())
      .add(std::numeric_limits<float>::quiet_NaN())
      .add(std::string("a\xff\xe2\x82z\x1f"))
      .add(1.5)
      .add(-7)
      .end_array();
  CHECK(out == "[null,null,\"a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDz\\u001f\",1.5,-7]");
  CHECK(parse_json(out).ok());
}

TEST_CASE("Long values are described shortly and without cutting a character") {
  CHECK(describe(value(std::string(500, 'x'))).size() < 80);
  CHECK(describe(value(value_list(1000, value(1)))) == "a list of 1000 entries");
  for (std::size_t n = 50; n < 64; ++n) {
    const auto text = describe(value(std::string(n, 'x') + "ééééééé"));
    CHECK(find_invalid_utf8(text) == std::string::npos);
  }
}
