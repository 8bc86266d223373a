// grammar_service compiles and caches grammars. A compiled grammar is found again for an equal
// request. Grammars in which control tokens such as `<tool_call>` count as text are stored
// separately from grammars without such tokens.
#include "actors/structured/grammar_service.hpp"

#include <atomic>
#include <memory>
#include <string>

#include "tests/actors/engine_fixture.hpp"
#include "tests/catch.hpp"

using namespace twill;
using namespace twill::actors;

namespace {

constexpr std::int32_t marker = 256;

compile_grammar order_of(const std::string& regex, bool with_markers) {
  compile_grammar order;
  order.spec.kind = config::grammar_kind::regex;
  order.spec.text = regex;
  if (with_markers) order.markers = {marker};
  return order;
}

std::shared_ptr<const models::model> byte_model() {
  auto model = std::make_shared<models::model>();
  model->text = std::make_shared<scripted::byte_tokenizer>();
  model->spec.vocab_size = 257;
  return model;
}

} // namespace

TEST_CASE("grammars with markers are compiled, and found again, apart from those without") {
  grammar_service service(byte_model(), {});
  CHECK(service.cached(order_of("a|b", false)) == nullptr);
  CHECK(service.cached(order_of("a|b", true)) == nullptr);
  const auto plain = service.compile(order_of("a|b", false));
  REQUIRE(plain->grammar.ok());
  CHECK(plain->tokens->bytes[marker].empty());
  CHECK(service.cached(order_of("a|b", true)) == nullptr);
  const auto marked = service.compile(order_of("a|b", true));
  REQUIRE(marked->grammar.ok());
  CHECK(marked->tokens->bytes[marker] == "<eos>");
  for (const bool with : {false, true}) {
    const auto known = service.cached(order_of("a|b", with));
    REQUIRE(known != nullptr);
    CHECK(known->tokens == (with ? marked : plain)->tokens);
    CHECK(known->grammar.value() == (with ? marked : plain)->grammar.value());
    CHECK(service.cached(order_of("other", with)) == nullptr);
  }
}

TEST_CASE("what nobody waits for, and what is left when the engine stops, is not compiled") {
  grammar_service service(byte_model(), {});
  auto order = order_of("a|b", false);
  order.abandoned = std::make_shared<std::atomic<bool>>(true);
  CHECK_FALSE(service.compile(order)->grammar.ok());
  *order.abandoned = false;
  CHECK(service.compile(order)->grammar.ok());
  service.stop();
  CHECK_FALSE(service.compile(order_of("c|d", false))->grammar.ok());
}
