#include "tests/support/worse.hpp"

#include <cmath>

#include "tests/catch.hpp"

using twill::test::worse;

TEST_CASE("the worst error is the largest, or NaN once one error is NaN") {
  CHECK(worse(1, 2) == 2);
  CHECK(worse(2, 1) == 2);
  CHECK(std::isnan(worse(1, std::nan(""))));
  CHECK(std::isnan(worse(std::nan(""), 1)));
  CHECK(worse(1, INFINITY) == INFINITY);
}
