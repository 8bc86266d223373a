// The formats of numbers in the views of `twill`.
#include "tools/twill/number_text.hpp"

#include <cmath>

#include "tests/catch.hpp"

using namespace twill::tools;

TEST_CASE("A bar is drawn of any number") {
  CHECK(bar_of(0.3) == "[###.......]  30 %");
  CHECK(bar_of(1) == "[##########] 100 %");
  CHECK(bar_of(7) == "[##########] 700 %");
  CHECK(bar_of(-1).starts_with("[..........] "));
  CHECK(bar_of(INFINITY).starts_with("[##########] "));
  CHECK(bar_of(NAN).starts_with("[..........] "));
}

TEST_CASE("A share of nothing is 0") {
  CHECK(share(3, 0) == 0);
  CHECK(share(3, NAN) == 0);
  CHECK(share(3, 4) == 0.75);
}
