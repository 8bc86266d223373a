// step_ends, which waits for the ends of steps on a device, compared with plain counters. In random
// order, the test launches steps, waits for steps, and lets the device end them. The test waits for
// the callbacks, which come on the thread of step_ends, so nothing depends on timing.
#include <atomic>
#include <memory>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "actors/executor/step_ends.hpp"
#include "tests/catch.hpp"
#include "tests/gpu/slow_device.hpp"
#include "tests/gpu/tested_device.hpp"
#include "tests/support/operations.hpp"

using namespace twill;
using namespace twill::test;
using actors::step_ends;

namespace {

void play_steps(gpu::device& dev, const operations& sequence) {
  slow_device device;
  std::atomic<int> received{0};
  std::atomic<bool> in_order{true}, too_early{false};
  std::atomic<int> passed{0}; ///< how many steps the device has ended
  int launched = 0, waited = 0;
  bool was_short = false;
  bool lost = false;
  std::vector<bool> fails; ///< whether a wait for each passed end fails
  {
    step_ends ends(dev);
    const auto pass = [&](int n) {
      for (; n > 0 && passed < launched; --n) {
        fails.push_back(lost);
        ++passed;
        device.let_pass();
        // If the device is lost later, wait() fails for every step whose end is not known yet. Wait
        // here until the end of this step was reported, so that the test knows the result.
        while (received < passed)
          std::this_thread::yield();
      }
    };
    for (const operation& op : sequence) {
      switch (op.kind % 8) {
      case 0:
      case 1:
      case 2: {
        if (launched - waited == static_cast<int>(step_ends::most)) break;
        const int number = ++launched;
        // The first call of this step's callback throws for lack of memory. This happens once in a
        // run at most: step_ends waits some milliseconds before it calls the callback again, which
        // slows the test down.
        const bool is_short = op.a % 16 == 15 && !std::exchange(was_short, true);
        ends.add([&, number, left = is_short ? 1 : 0]() mutable {
          if (passed < number) too_early = true;
          if (left-- > 0) {
            throw std::bad_alloc();
          }
          if (received != number - 1) in_order = false;
          received = number;
        });
        break;
      }
      case 3:
      case 4:
        pass(1 + static_cast<int>(op.a % 2));
        break;
      case 5:
      case 6: {
        if (waited == passed) break; // no step ends, so wait() would not return
        const auto ended = ends.wait();
        demand_equal(ended.ok(), !fails[static_cast<std::size_t>(waited)], "whether a step ends");
        demand(ended.ok() || ended.code() == gpu::errc::device_lost, "why a step does not end");
        ++waited;
        break;
      }
      default:
        if (op.a % 8 != 7) break;
        device.lose();
        lost = true;
      }
      demand(!too_early, "a step was told before the device had come so far");
      demand(in_order, "steps were not told in their order");
      demand_equal(received.load(), passed.load(), "steps that were told");
    }
    pass(launched); // lets the thread end that waits for the device
  }
  demand_equal(received.load(), launched, "steps that were told at the end");
  demand(in_order && !too_early, "steps were told in their order at the end");
}

} // namespace

TEST_CASE("steps end once each, in order, and not before the device has come so far", "[actors]") {
  const auto dev = open_tested({.threads = 1});
  CHECK(first_failure({.cases = 150, .long_cases = 10'000, .most_operations = 60},
                      [&](const operations& sequence) { play_steps(*dev, sequence); }) == "");
}
