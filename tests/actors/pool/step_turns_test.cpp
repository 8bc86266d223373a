// step_turns decides whose step runs when several models share the cores. The steps of two models
// alternate while both have steps to run, and a model that is alone never waits.
#include "actors/pool/step_turns.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "tests/actors/engine_fixture.hpp"
#include "tests/catch.hpp"

using namespace twill::actors;
using namespace std::chrono_literals;

TEST_CASE("steps of models that both have one alternate", "[pool]") {
  step_turns turns;
  turns.enter(); // both threads must wait behind this step
  std::vector<std::size_t> order;
  std::atomic<int> inside{0};
  std::atomic<bool> together{false};
  const auto run = [&](std::size_t model) {
    for (int i = 0; i < 5; ++i) {
      turns.enter();
      if (++inside != 1) together = true;
      order.push_back(model);
      // Go on when the other thread waits too, or has ended.
      if (order.size() < 10) scripted::eventually([&] { return turns.n_under_way() == 2; });
      --inside;
      turns.leave();
    }
  };
  std::thread a(run, 0), b(run, 1);
  scripted::eventually([&] { return turns.n_under_way() == 3; });
  turns.leave();
  a.join();
  b.join();
  CHECK_FALSE(together);
  REQUIRE(order.size() == 10);
  for (std::size_t i = 1; i < order.size(); ++i)
    CHECK(order[i] != order[i - 1]);
  turns.enter();
  turns.leave();
}

TEST_CASE("runners that share turns run one step at a time, none of them ahead", "[pool]") {
  const auto turns = std::make_shared<step_turns>();
  const auto plan = std::make_shared<scripted::script>();
  plan->ahead = true;
  const auto runner = take_turns(scripted::runners(plan), turns)();
  const auto info = runner->load();
  REQUIRE(info.ok());
  CHECK_FALSE(info.value().runs_ahead);
  CHECK_FALSE(runner->device_is_lost());
  plan->lost = true;
  CHECK(runner->device_is_lost());
  turns->enter(); // a step of another model
  std::thread steps([&] {
    step_samples drawn;
    executor_step batch;
    batch.first_token = {0};
    CHECK(runner->run(batch, drawn).ok());
  });
  CHECK(scripted::eventually([&] { return turns->n_under_way() == 2; }));
  CHECK(plan->steps == 0);
  turns->leave();
  steps.join();
  CHECK(plan->steps == 1);
  CHECK(turns->n_under_way() == 0);
}
