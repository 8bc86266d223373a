#include "tools/twill/context_use.hpp"

#include <cstdint>

#include "tests/catch.hpp"

using twill::tools::context_use;

TEST_CASE("a context is nearly full from 80 %, and unknown limits are never reached", "[tools]") {
  CHECK_FALSE(context_use{799, 1000}.nearly_full());
  CHECK(context_use{800, 1000}.nearly_full());
  CHECK_FALSE(context_use{999, 1000}.full());
  CHECK(context_use{1000, 1000}.full());
  CHECK_FALSE(context_use{1000, 0}.full());
  CHECK_FALSE(context_use{1000, 0}.nearly_full());
  // The numbers come from a server, so even absurd ones must do no harm.
  CHECK(context_use{INT64_MAX, 1}.nearly_full());
  CHECK_FALSE(context_use{-5, 10}.nearly_full());
  CHECK_FALSE(context_use{5, -10}.nearly_full());
}
