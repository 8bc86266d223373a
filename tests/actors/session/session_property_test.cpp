// A session_core (the logic of one request) under random requests, tokens and disturbances,
// compared with a plain reference after each operation.
#include <string>

#include "config/base/log.hpp"
#include "tests/actors/session/session_play.hpp"
#include "tests/catch.hpp"
#include "tests/support/operations.hpp"

using namespace twill::test;

namespace {

void play_session(const operations& sequence) {
  if (sequence.size() < 3) return;
  session_tests::session_play play(
      session_tests::made_up_request(sequence[0], sequence[1], sequence[2]));
  for (std::size_t i = 3; i < sequence.size(); ++i)
    play.perform(sequence[i]);
}

} // namespace

TEST_CASE("whatever happens to a session, its client has what its tokens say, once", "[actors]") {
  twill::log::configure(twill::log::level::off); // thousands of requests end
  const std::string failure =
      first_failure({.cases = 2500, .long_cases = 100'000, .most_operations = 250}, play_session);
  twill::log::configure(twill::log::level::info);
  CHECK(failure == "");
}
