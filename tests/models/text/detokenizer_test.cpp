#include <string>

#include "models/text/detokenizer.hpp"
#include "tests/catch.hpp"

using twill::models::is_utf8;
using twill::models::take_utf8;

namespace {

std::string replace_invalid(std::string bytes) {
  std::string out;
  take_utf8(bytes, out);
  if (!bytes.empty()) out += "\xEF\xBF\xBD";
  return out;
}

const std::string bad = "\xEF\xBF\xBD";

} // namespace

TEST_CASE("valid text passes through whole") {
  const std::string text = "a\xC3\xA9\xE4\xBD\xA0\xF0\x9F\x98\x80\xED\x9F\xBF\xF4\x8F\xBF\xBF";
  CHECK(is_utf8(text));
  CHECK(replace_invalid(text) == text);
}

TEST_CASE("each maximal subpart becomes one replacement character") {
  // The examples of the Unicode standard, section 3.9, table 3-8 and after.
  CHECK(replace_invalid("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41") ==
        bad + bad + bad + bad + bad + bad + bad + bad + "A");
  CHECK(replace_invalid("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41") ==
        bad + bad + bad + bad + bad + bad + bad + bad + "A");
  CHECK(replace_invalid("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42") ==
        bad + bad + bad + bad + bad + "A" + bad + bad + "B");
  CHECK(replace_invalid("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41") == bad + bad + bad + bad + "A");
}

TEST_CASE("an unfinished character waits, byte by byte") {
  std::string pending, out;
  for (const char c : std::string("\xF0\x9F\x98")) {
    pending.push_back(c);
    take_utf8(pending, out);
    CHECK(out.empty());
  }
  pending.push_back('\x80');
  take_utf8(pending, out);
  CHECK(out == "\xF0\x9F\x98\x80");
  CHECK(pending.empty());
}

TEST_CASE("a broken character is replaced as soon as that is certain") {
  std::string pending = "\xE4\xBD", out;
  take_utf8(pending, out);
  CHECK(out.empty());
  pending += "x";
  take_utf8(pending, out);
  CHECK(out == bad + "x");
}
