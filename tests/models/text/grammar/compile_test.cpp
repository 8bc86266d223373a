#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "models/text/grammar/compile.hpp"
#include "tests/catch.hpp"
#include "tests/models/text/grammar/byte_vocabulary.hpp"

using namespace twill::test;
using clock_type = std::chrono::steady_clock;

namespace {

twill::config::grammar_spec ebnf(const std::string& text) {
  return {twill::config::grammar_kind::ebnf, text, {}, false};
}

/// A grammar of rules whose automata have a thousand states each and are all different.
std::string bomb(int n_rules = 600) {
  std::string root = "root ::= \"\"", rules;
  for (int i = 0; i < n_rules; ++i) {
    const auto n = std::to_string(i);
    root += " | r" + n;
    rules += "r" + n + " ::= Regex(\"([^a]|bb" + n + "){0,128}c" + n + "\")\n";
  }
  return root + "\n" + rules;
}

} // namespace

TEST_CASE("grammar compiler: what the helper compiled is the grammar") {
  grammar_compiler compiler(byte_vocabulary(), {});
  const auto made =
      compiler.compile(schema_spec(R"({"type": "object", "properties": {"a": {"type": "integer"}},
                                                     "required": ["a"]})"));
  INFO((made.ok() ? "" : made.detail()));
  REQUIRE(made.ok());
  CHECK(passes(made.value(), R"({"a": 12})"));
  CHECK_FALSE(passes(made.value(), R"({"a": "x"})"));
}

TEST_CASE("grammar compiler: equal specs share one compiled grammar, also from many threads") {
  grammar_compiler compiler(byte_vocabulary(), {});
  std::vector<compiled_grammar_ptr> made(4);
  {
    std::vector<std::jthread> threads;
    for (auto& slot : made)
      threads.emplace_back([&] { slot = compiler.compile(ebnf("root ::= [ab]+")).value(); });
  }
  for (const auto& each : made)
    CHECK(each == made.front());
}

TEST_CASE("grammar compiler: refusals keep their words") {
  grammar_compiler compiler(byte_vocabulary(), {});
  const std::string set = R"({"type": "array", "items": {"type": "string"}, "uniqueItems": true})";
  const auto taken = compiler.compile(schema_spec(set));
  REQUIRE(taken.ok());
  CHECK(passes(taken.value(), R"(["a", "a"])"));
  compile_limits limits;
  limits.repeated_items = false;
  const auto refused = grammar_compiler(byte_vocabulary(), limits).compile(schema_spec(set));
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.code() == errc::unsupported);
  CHECK(refused.detail().find("`uniqueItems` at #") != std::string::npos);
  const auto bad = compiler.compile(ebnf("root ::= nothing"));
  REQUIRE_FALSE(bad.ok());
  CHECK(bad.code() == errc::bad_grammar);
}

TEST_CASE("grammar compiler: the limit is of processor time, whatever else the machine does") {
  const auto alone_began = clock_type::now();
  REQUIRE(grammar_compiler(byte_vocabulary(), {}).compile(ebnf(bomb(4))).ok());
  const auto alone = clock_type::now() - alone_began;
  compile_limits limits;
  limits.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(3 * alone);
  grammar_compiler compiler(byte_vocabulary(), limits);
  // The helper yields to these threads, so that compiling takes many times as long by the clock.
  std::atomic<bool> over{false};
  std::vector<std::jthread> busy;
  for (unsigned i = 0; i < 16 * std::thread::hardware_concurrency(); ++i)
    busy.emplace_back([&over] {
      while (!over) {
      }
    });
  const auto began = clock_type::now();
  const auto made = compiler.compile(ebnf(bomb(4)));
  const auto took = clock_type::now() - began;
  over = true;
  busy.clear();
  INFO((made.ok() ? "" : made.detail()));
  CHECK(made.ok());
  CHECK(took > limits.timeout);
}

TEST_CASE("grammar compiler: what is not compiled in time is nobody's fault but the machine's") {
  compile_limits limits;
  limits.timeout = std::chrono::seconds(60);
  limits.patience = std::chrono::milliseconds(300);
  grammar_compiler compiler(byte_vocabulary(), limits);
  const auto late = compiler.compile(ebnf(bomb()));
  REQUIRE_FALSE(late.ok());
  CHECK(late.code() == errc::overdue);
  CHECK(late.detail().find("structured.wait_timeout = 300 ms") != std::string::npos);
}

TEST_CASE("grammar compiler: a bomb ends at its time limit and harms nobody") {
  compile_limits limits;
  limits.timeout = std::chrono::milliseconds(400);
  grammar_compiler compiler(byte_vocabulary(), limits);
  const auto refused = compiler.compile(ebnf(bomb()));
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.code() == errc::timed_out);
  CHECK(refused.detail().find("structured.compile_timeout = 400 ms") != std::string::npos);
  CHECK(compiler.compile(ebnf("root ::= \"still here\"")).ok());
}

TEST_CASE("grammar compiler: a small grammar whose masks take for ever is refused") {
  compile_limits limits;
  limits.timeout = std::chrono::seconds(3);
  grammar_compiler compiler(byte_vocabulary(), limits);
  const std::string quoted = R"({"type": "string", "pattern": ")";
  for (const auto& slow :
       {twill::config::grammar_spec{
            twill::config::grammar_kind::regex, "(([a-z]{1,100}){1,100}){1,100}x", {}, false},
        schema_spec(quoted + "^(([a-z]{1,100}){1,100}){1,100}x$\"}"),
        ebnf("root ::= r0? r1? r2?\nr0 ::= (root | [a-z]{1,20}) {1,20}\n"
             "r1 ::= (root | [a-z]{1,20}) {1,20}\nr2 ::= (root | [a-z]{1,20}) {1,20}\n")}) {
    const auto refused = compiler.compile(slow);
    REQUIRE_FALSE(refused.ok());
    INFO(refused.detail());
    CHECK((refused.code() == errc::too_large || refused.code() == errc::timed_out ||
           refused.code() == errc::out_of_memory));
  }
  CHECK(compiler.compile(ebnf("root ::= ([a-z]{1,100} \" \"){1,100} \"x\"")).ok());
  CHECK(compiler.compile(ebnf("root ::= root")).code() == errc::unsatisfiable);
}

#ifndef __SANITIZE_ADDRESS__ // AddressSanitizer reserves too much address space for a limit
TEST_CASE("grammar compiler: a bomb ends at its memory limit") {
  compile_limits limits;
  limits.timeout = std::chrono::seconds(60);
  limits.memory_bytes = std::int64_t{24} << 20;
  grammar_compiler compiler(byte_vocabulary(), limits);
  const auto refused = compiler.compile(ebnf(bomb()));
  REQUIRE_FALSE(refused.ok());
  INFO(refused.detail());
  CHECK(refused.code() == errc::out_of_memory);
}
#endif

TEST_CASE("grammar compiler: long requests are refused unread, a missing helper is an error") {
  compile_limits limits;
  limits.max_spec_bytes = 100;
  grammar_compiler strict(byte_vocabulary(), limits);
  CHECK(strict.compile(ebnf(std::string(101, ' '))).code() == errc::too_large);
  limits.helper = "/nowhere/twill-grammar";
  grammar_compiler lost(byte_vocabulary(), limits);
  CHECK(lost.compile(ebnf("root ::= \"a\"")).code() == errc::helper_failed);
}
