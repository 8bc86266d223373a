// step_turns: steps of two models alternate while both have one, and one alone never waits.
#include "actors/pool/step_turns.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

#include "tests/catch.hpp"

using namespace twill::actors;
using namespace std::chrono_literals;

TEST_CASE("steps of models that both have one alternate", "[pool]") {
  step_turns turns;
  turns.enter(); // both wait behind this one
  std::vector<std::size_t> order;
  std::atomic<int> inside{0};
  std::atomic<bool> together{false};
  const auto run = [&](std::size_t model) {
    for (int i = 0; i < 5; ++i) {
      turns.enter();
      if (++inside != 1) together = true;
      order.push_back(model);
      std::this_thread::sleep_for(5ms); // until the other waits
      --inside;
      turns.leave();
    }
  };
  std::thread a(run, 0), b(run, 1);
  std::this_thread::sleep_for(20ms);
  turns.leave();
  a.join();
  b.join();
  CHECK_FALSE(together);
  REQUIRE(order.size() == 10);
  for (std::size_t i = 2; i < 9; ++i)
    CHECK(order[i] != order[i - 1]);
  turns.enter();
  turns.leave();
}
