#include "tools/twill/word_wrap.hpp"

#include <clocale>
#include <cstddef>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "tests/catch.hpp"

using twill::tools::word_wrap;
using twill::tools::wrapped;

namespace {

struct utf8_locale {
  utf8_locale() { std::setlocale(LC_CTYPE, "C.UTF-8"); }
  ~utf8_locale() { std::setlocale(LC_CTYPE, "C"); }
};

std::string in_pieces(const std::string& text, std::size_t columns, std::mt19937& random) {
  word_wrap wrap;
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t n = 1 + random() % 5;
    out += wrap.add(text.substr(i, n), columns);
    i += n;
  }
  return out + wrap.end();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);)
    lines.push_back(line);
  return lines;
}

} // namespace

TEST_CASE("words go on in the next line, and the text's own lines stay", "[tools]") {
  CHECK(wrapped("one two three", 7) == "one two\nthree");
  CHECK(wrapped("one two three", 8) == "one two\nthree");
  CHECK(wrapped("one\n\n  two three", 7) == "one\n\n  two\n  three");
  CHECK(wrapped("one   two", 9) == "one   two");
  CHECK(wrapped("one   two", 8) == "one\ntwo");
  CHECK(wrapped("a\tbc", 10) == "a\tbc");
  CHECK(wrapped("a\tbc", 9) == "a\nbc");
  CHECK(wrapped("one two three", 0) == "one two three");
  CHECK(wrapped("", 5).empty());
}

TEST_CASE("a word that is longer than a line fills lines", "[tools]") {
  CHECK(wrapped("abcdefgh", 3) == "abc\ndef\ngh");
  CHECK(wrapped("x abcdefgh y", 3) == "x\nabc\ndef\ngh\ny");
  CHECK(wrapped("x abcdefg y", 3) == "x\nabc\ndef\ng y");
}

TEST_CASE("the lines of an item are indented as its text", "[tools]") {
  CHECK(wrapped("- one two", 6) == "- one\n  two");
  CHECK(wrapped("10. one two", 8) == "10. one\n    two");
  CHECK(wrapped("- one two\n    - three four", 12) == "- one two\n    - three\n      four");
  CHECK(wrapped("1.5 one two", 8) == "1.5 one\ntwo");
}

TEST_CASE("wide characters count two columns, and lines break between them", "[tools]") {
  const utf8_locale utf8;
  CHECK(wrapped("你好世界", 5) == "你好\n世界");
  CHECK(wrapped("你好世界。", 8) == "你好世\n界。"); // no line begins with a full stop
  CHECK(wrapped("你好「世界", 7) == "你好\n「世界");
  CHECK(wrapped("你好 world", 9) == "你好\nworld");
  CHECK(wrapped("你好world", 8) == "你好\nworld");
  CHECK(wrapped("안녕 세계", 8) == "안녕\n세계"); // Korean is wrapped at spaces
  CHECK(wrapped("e\u0301e\u0301e\u0301 e\u0301", 5) == "e\u0301e\u0301e\u0301 e\u0301");
  CHECK(wrapped("👍🏽👍🏽", 4) == "👍🏽\n👍🏽");
  const std::string family = "\U0001f469\u200d\U0001f469\u200d\U0001f467"; // one glyph
  CHECK(wrapped(family + family, 8) == family + "\n" + family);
}

TEST_CASE("code and tables stay as they are", "[tools]") {
  const std::string code = "a b c d e f g h i j";
  for (const std::string& text :
       {"```\n" + code + "\n```", "~~~ cpp\n" + code + "\n```\n" + code + "\n~~~~",
        "x\n\n    " + code + "\n\n\t" + code, "| " + code + " |\n|---|",
        "- ```\n  " + code + "\n  ```"})
    CHECK(wrapped(text, 6) == text);
  CHECK(wrapped("```\n" + code + "\n```\n" + code, 9) ==
        "```\n" + code + "\n```\na b c d e\nf g h i j");
  // Indented lines of an item or a paragraph are no code block, nor is a span between backquotes.
  CHECK(wrapped("- a\n\n    " + code, 13) == "- a\n\n    a b c d e\n    f g h i j");
  CHECK(wrapped("x\n    " + code, 13) == "x\n    a b c d e\n    f g h i j");
  CHECK(wrapped("```a b``` c\n" + code, 9) == "```a b``` c\na b c d e\nf g h i j");
}

TEST_CASE("any text keeps its words, in lines that fit, however it comes", "[tools]") {
  const utf8_locale utf8;
  const std::vector<std::string> parts = {
      "a",  "bc",  "defg",   " ",      " ",      " ",    "\n",      "\t",  "你",
      "。", "한",  "é",      "👍",      "- ",     "`",    "```",     "~~~", "\n\n    ",
      "|",  "1. ", "\u200d", "\ufe0f", "\u0301", "\xff", "\xf0\x9f"};
  std::mt19937 random(3);
  for (int round = 0; round < 4000; ++round) {
    std::string text;
    for (auto left = random() % 60; left > 0; --left)
      text += parts[random() % parts.size()];
    const std::size_t columns = 1 + random() % 20;
    const auto out = wrapped(text, columns);
    CHECK(out == in_pieces(text, columns, random));
    std::string before = text, after = out;
    for (auto* one : {&before, &after})
      std::erase_if(*one, [](char c) { return c == ' ' || c == '\n' || c == '\t'; });
    CHECK(before == after);
  }
  // The first six parts are plain words and spaces, so that lines can be measured.
  for (int round = 0; round < 2000; ++round) {
    std::string text = "x";
    for (auto left = random() % 60; left > 0; --left)
      text += parts[random() % 6];
    const std::size_t columns = 4 + random() % 20;
    std::string words = wrapped(text, columns);
    for (const auto& line : lines_of(words))
      CHECK(line.size() <= columns);
  }
}
