// Expressions of tokenizer.json cut texts as Hugging Face's library does; tools/golden has the
// script that wrote what it did.
#include <cstdint>
#include <string>
#include <vector>

#include "models/text/tokenizer/pretokenizer.hpp"
#include "models/text/tokenizer/regex.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/support/json.hpp"

using namespace twill;
using namespace twill::models;
using test::at;
using test::list_of;
using test::text_of;

namespace {

const value& golden() {
  static const value file =
      test::read_json_file(test::golden_dir() + "/tokenizers/split_patterns.json");
  return file;
}

std::vector<std::int64_t> cuts_of(const pretokenizer& split, const std::string& text) {
  word_list list;
  REQUIRE(split.split(text, true, list).ok());
  std::vector<std::int64_t> cuts;
  std::int64_t at = 0;
  for (const std::string_view word : list.words)
    cuts.push_back(at += static_cast<std::int64_t>(word.size()));
  REQUIRE(at == static_cast<std::int64_t>(text.size()));
  cuts.pop_back();
  return cuts;
}

void check_cuts(const pretokenizer& split, const value& texts, const value& expected) {
  for (std::size_t i = 0; i < list_of(texts).size(); ++i) {
    const std::string& text = text_of(list_of(texts)[i]);
    CAPTURE(text);
    std::vector<std::int64_t> cuts;
    for (const value& cut : list_of(list_of(expected)[i]))
      cuts.push_back(*cut.as_int());
    CHECK(cuts_of(split, text) == cuts);
  }
}

/// Checks each entry of a list and counts those that are refused; `texts` are those of all entries
/// that have none of their own.
int check_list(const char* list) {
  int n_refused = 0;
  for (const value& entry : list_of(at(golden(), list))) {
    std::vector<split_rule> rules;
    bool refused = false;
    for (const value& expression : list_of(at(entry, "expressions"))) {
      const auto compiled = regex::make_oniguruma(text_of(expression));
      INFO(text_of(expression));
      UNSCOPED_INFO((compiled.ok() ? std::string() : compiled.detail()));
      if (refused = !compiled.ok(); refused) break;
      rules.push_back(split_by(compiled.value(), match_behavior::isolated, false));
    }
    n_refused += refused;
    if (refused) continue;
    CAPTURE(text_of(list_of(at(entry, "expressions")).front()));
    const value* own = entry.find("texts");
    check_cuts(pretokenizer(std::move(rules)), own != nullptr ? *own : at(golden(), "texts"),
               at(entry, "cuts"));
  }
  return n_refused;
}

} // namespace

TEST_CASE("published split patterns cut as their library cuts", "[golden]") {
  CHECK(check_list("published") == 0);
}

TEST_CASE("each construct of Oniguruma's syntax cuts as its library cuts", "[golden]") {
  CHECK(check_list("constructs") == 0);
}

TEST_CASE("random split patterns cut as their library cuts, or are refused", "[golden]") {
  CHECK(check_list("random") < 50); // of 150
}

TEST_CASE("a split pattern without an exact counterpart is refused, with the place") {
  for (const value& expression : list_of(at(golden(), "refused"))) {
    CAPTURE(text_of(expression));
    const auto compiled = regex::make_oniguruma(text_of(expression));
    REQUIRE_FALSE(compiled.ok());
    CHECK(compiled.code() == errc::unsupported);
    CHECK(compiled.detail().find("offset") != std::string::npos);
  }
}

TEST_CASE("split patterns of hostile files end in a failure, never in deep recursion") {
  const auto many = [](const std::string& unit, std::size_t n) {
    std::string text;
    for (std::size_t i = 0; i < n; ++i)
      text += unit;
    return text;
  };
  for (const std::string& expression :
       {many("(", 60'000), many("[", 60'000), many("(?i)", 16'000), many("a|", 30'000) + "(",
        "(?:" + many("a{60000}", 8'000) + "){60000}", std::string(70'000, 'a'), std::string("\xFF"),
        many("(?#", 20'000), std::string("[a\\"), std::string("\\"), std::string("[[:"),
        std::string("(?<"), std::string("\\p{"), std::string("\\x{"), std::string("(?")}) {
    CAPTURE(expression.substr(0, 20));
    CHECK_FALSE(regex::make_oniguruma(expression).ok());
  }
}
