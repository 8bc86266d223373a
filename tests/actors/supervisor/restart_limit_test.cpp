// When the supervisor stops restarting what keeps failing.
#include "actors/supervisor/restart_limit.hpp"

#include "tests/catch.hpp"

using twill::actors::restart_limit;
using namespace std::chrono_literals;

TEST_CASE("failures within the window are allowed up to the limit") {
  restart_limit limit(2, 60s);
  const std::chrono::steady_clock::time_point start{};
  CHECK(limit.allows(start));
  CHECK(limit.allows(start + 1s));
  CHECK_FALSE(limit.allows(start + 2s));
}

TEST_CASE("failures older than the window do not count") {
  restart_limit limit(2, 60s);
  const std::chrono::steady_clock::time_point start{};
  CHECK(limit.allows(start));
  CHECK(limit.allows(start + 50s));
  CHECK(limit.allows(start + 61s)); // the first is forgotten
  CHECK_FALSE(limit.allows(start + 70s));
}
