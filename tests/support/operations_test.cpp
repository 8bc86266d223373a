#include "tests/support/operations.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "tests/catch.hpp"

using namespace twill::test;

TEST_CASE("operations: a property that holds has no failure, and was tried on long sequences") {
  std::size_t longest = 0;
  int runs = 0;
  std::uint32_t greatest = 0;
  const auto failure = first_failure({}, [&](const operations& sequence) {
    ++runs;
    longest = std::max(longest, sequence.size());
    for (const operation& o : sequence)
      greatest = std::max({greatest, o.kind, o.a, o.b, o.c});
  });
  CHECK(failure == "");
  CHECK(runs >= cases_here(200));
  CHECK(longest > 50);
  CHECK(greatest > 1'000'000);
}

TEST_CASE("operations: what fails is shrunk to the shortest sequence and the least numbers") {
  const auto failure = first_failure({}, [](const operations& sequence) {
    int above = 0;
    for (const operation& o : sequence)
      above += o.a > 1000;
    demand_equal(std::min(above, 2), std::min(above, 1), "what is above");
  });
  INFO(failure);
  CHECK(failure.find("what is above is 2, expected 1\nby the operations {kind, a, b, c} "
                     "{0, 1001, 0, 0} {0, 1001, 0, 0}\nTWILL_SEED=") == 0);
}

TEST_CASE("operations: an exception of another kind is a failure as well") {
  const auto failure = first_failure({}, [](const operations& sequence) {
    if (sequence.size() > 3) throw std::logic_error("a table has no such row");
  });
  CHECK(failure.find("a table has no such row") != std::string::npos);
}
