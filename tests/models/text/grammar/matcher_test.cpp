#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/models/text/grammar/byte_vocabulary.hpp"

using namespace twill::test;

namespace {

compiled_grammar_ptr made(twill::config::grammar_kind kind, const std::string& text,
                          std::vector<std::string> choices = {}) {
  const auto out = compiled({kind, text, std::move(choices), false});
  REQUIRE(out.ok());
  return out.value();
}

} // namespace

TEST_CASE("matcher: masks, tokens, rollback and forks go together") {
  const auto g = made(twill::config::grammar_kind::ebnf, "root ::= \"ab\" [cd]+");
  matcher at(g);
  std::vector<std::int32_t> mask(mask_words(byte_vocabulary()->size()));
  CHECK(at.fill_next_mask(mask));
  CHECK(allows(mask, 'a'));
  CHECK_FALSE(allows(mask, 'b'));
  CHECK_FALSE(at.accept('b'));
  CHECK(at.accept('a'));
  CHECK(at.accept('b'));
  CHECK_FALSE(at.is_complete());
  matcher other = at.fork();
  CHECK(other.accept('c'));
  CHECK(other.is_complete());
  CHECK(other.accept(end_of_answer));
  CHECK(other.is_terminated());
  CHECK_FALSE(at.is_complete());
  at.rollback(1);
  CHECK_FALSE(at.accept('c'));
  CHECK(at.accept('b'));
  CHECK_FALSE(at.accept(-1));
  CHECK_FALSE(at.accept(99999));
  other.rollback(1);
  CHECK_FALSE(other.is_terminated());
}

TEST_CASE("matcher: a regular expression covers the whole answer") {
  const auto g = made(twill::config::grammar_kind::regex, "[a-c]{2}|^x\\d+$");
  for (const auto* text : {"ab", "x1", "x123"})
    CHECK(passes(g, text));
  for (const auto* text : {"abc", "a", "x", "yx1", ""})
    CHECK_FALSE(passes(g, text));
  const auto ahead = made(twill::config::grammar_kind::regex, "^(?!ab)[a-c]{2}$");
  CHECK(passes(ahead, "ac"));
  CHECK_FALSE(passes(ahead, "ab"));
}

TEST_CASE("matcher: a regular expression that counts many characters") {
  const auto counted = made(twill::config::grammar_kind::regex, "^[a-z é]{1,200}$|[\"\\\\]{150}x");
  for (const auto& text : {std::string("a"), std::string(200, ' '), std::string(128, 'z'),
                           std::string(150, '"') + "x", std::string(150, '\\') + "x"})
    CHECK(passes(counted, text));
  for (const auto& text : {std::string(), std::string(201, 'a'), std::string("A"),
                           std::string(149, '"') + "x", std::string(150, '"')})
    CHECK_FALSE(passes(counted, text));
  std::string accented;
  for (int i = 0; i < 200; ++i)
    accented += "é";
  CHECK(passes(counted, accented));
  CHECK_FALSE(passes(counted, accented + "é"));
}

TEST_CASE("matcher: one of several choices") {
  const auto g = made(twill::config::grammar_kind::choice, "", {"yes", "no", "ja \"é\"\n"});
  for (const auto* text : {"yes", "no", "ja \"é\"\n"})
    CHECK(passes(g, text));
  CHECK_FALSE(passes(g, "y"));
  CHECK_FALSE(passes(g, "yesno"));
}

TEST_CASE("matcher: llama.cpp's grammars are taken as they are") {
  const auto g =
      made(twill::config::grammar_kind::ebnf, "# a comment\nroot ::= item (\",\" ws item){0,2}\n"
                                              "item ::= [0-9]+ | \"x\" [^,]?\nws ::= \" \"*\n");
  CHECK(passes(g, "1, 22,xy"));
  CHECK_FALSE(passes(g, "1,2,3,4"));
  const auto bad = compiled({twill::config::grammar_kind::ebnf, "root ::= missing", {}, false});
  REQUIRE_FALSE(bad.ok());
  CHECK(bad.code() == errc::bad_grammar);
}

TEST_CASE("matcher: any JSON object") {
  const auto g = made(twill::config::grammar_kind::json_object, "");
  CHECK(passes(g, R"({"a": [1, -2.5e3, "\u00e9\n", {"b": null}], "": true})"));
  CHECK(passes(g, "{}"));
  CHECK_FALSE(passes(g, "[]"));
  CHECK_FALSE(passes(g, "{\"a\": 01}"));
  CHECK_FALSE(passes(g, "{\"a\": 1,}"));
  CHECK_FALSE(passes(g, "{\"a\tb\": 1}"));
}
