// output_guard decides which tokens an output that a grammar constrains may hold next: text that
// the grammar allows, white space up to a limit, and reasoning before the grammar begins.
#include "actors/executor/output_guard.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/grammar/compile.hpp"
#include "tests/catch.hpp"
#include "tests/models/text/grammar/byte_vocabulary.hpp"

using namespace twill;
using namespace twill::actors;
using test::end_of_answer;

namespace {

constexpr std::int32_t end_and_answer = 257; ///< a token that ends reasoning and begins an answer
constexpr std::int32_t begin_of_reasoning = 258;

/// The bytes, the end, and two tokens more.
models::grammar::vocabulary_ptr tokens() {
  std::vector<std::string> bytes = test::byte_vocabulary()->bytes;
  bytes.emplace_back("nk>\n {");
  bytes.emplace_back();
  return models::grammar::make_vocabulary(std::move(bytes), {end_of_answer});
}

struct fixture {
  fixture(const std::string& regex, bool is_json) {
    config::grammar_spec spec;
    spec.kind = config::grammar_kind::regex;
    spec.text = regex;
    models::grammar::grammar_compiler compiler(rules->tokens = tokens(), {});
    auto compiled = compiler.compile(spec, [] { return false; });
    REQUIRE(compiled.ok());
    rules->grammar = std::move(compiled).value();
    rules->is_json = is_json;
  }
  void begin() { guard = std::make_unique<output_guard>(rules); }
  bool accept(std::string_view text) {
    for (const char c : text)
      if (!guard->accept(static_cast<unsigned char>(c))) return false;
    return true;
  }
  bool allows(std::int32_t id) {
    std::vector<std::uint32_t> mask(
        static_cast<std::size_t>(models::grammar::mask_words(rules->tokens->size())));
    guard->fill_mask(mask);
    return (mask[static_cast<std::size_t>(id) / 32] >> (id % 32) & 1) != 0;
  }

  std::shared_ptr<output_rules> rules = std::make_shared<output_rules>();
  std::unique_ptr<output_guard> guard;
};

} // namespace

TEST_CASE("white space of JSON is bounded where something else may follow", "[actors]") {
  for (const bool is_json : {true, false}) {
    fixture r("\\{ *x\\}", is_json);
    r.begin();
    REQUIRE(r.accept("{"));
    REQUIRE(r.accept(std::string(most_json_space_bytes - 1, ' ')));
    CHECK(r.allows(' '));
    REQUIRE(r.accept(" "));
    CHECK(r.allows(' ') == !is_json);
    CHECK(r.allows('x'));
    CHECK_FALSE(r.allows('y'));
    REQUIRE(r.accept("x}"));
    CHECK(r.allows(end_of_answer));
    REQUIRE(r.guard->accept(end_of_answer));
    CHECK(r.guard->is_over());
  }
}

TEST_CASE("white space that must follow may follow, however much there is", "[actors]") {
  fixture r("\\{ {" + std::to_string(most_json_space_bytes + 9) + "}x", true);
  r.begin();
  REQUIRE(r.accept("{" + std::string(most_json_space_bytes + 8, ' ')));
  CHECK(r.allows(' '));
  CHECK_FALSE(r.allows('x'));
  REQUIRE(r.accept(" "));
  CHECK(r.allows('x'));
}

TEST_CASE("an output that reasons first is free until its reasoning ends", "[actors]") {
  fixture r("\\{x\\}", false);
  r.rules->begins_in_reasoning = true;
  r.rules->reasoning_end = "</think>";
  for (const bool in_one_token : {false, true}) {
    r.begin();
    CHECK(r.allows('q'));
    CHECK(r.allows('{'));
    CHECK_FALSE(r.allows(end_of_answer)); // an end here would leave out the answer
    REQUIRE(r.accept("it is <b>, </thin</thi"));
    CHECK(r.allows('q'));
    if (in_one_token) { // this token also begins the answer
      REQUIRE(r.guard->accept(end_and_answer));
    } else {
      REQUIRE(r.accept("nk>"));
      CHECK(r.allows('{'));
      REQUIRE(r.accept("{"));
    }
    CHECK_FALSE(r.allows('q'));
    CHECK(r.allows('x'));
    REQUIRE(r.accept("x}"));
    CHECK(r.allows(end_of_answer));
    CHECK_FALSE(r.accept("x"));
  }
}

TEST_CASE("an output may begin to reason with its first token, and with no other", "[actors]") {
  fixture r("\\{x\\}", false);
  r.rules->reasoning_begin_token = begin_of_reasoning;
  r.rules->reasoning_end = "</think>";
  r.begin();
  CHECK(r.allows(begin_of_reasoning));
  CHECK(r.allows('{'));
  CHECK_FALSE(r.allows('q'));
  REQUIRE(r.accept("{"));
  CHECK_FALSE(r.allows(begin_of_reasoning));
  CHECK_FALSE(r.guard->accept(begin_of_reasoning));
  r.begin();
  REQUIRE(r.guard->accept(begin_of_reasoning));
  CHECK(r.allows('q'));
  REQUIRE(r.accept("q</think>{x}"));
  CHECK_FALSE(r.guard->accept(-1));
  CHECK_FALSE(r.guard->accept(r.rules->tokens->size()));
}
