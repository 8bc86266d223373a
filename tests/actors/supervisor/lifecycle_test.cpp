// lifecycle decides when the supervisor loads and restarts the executor, gives up and tries again.
// The tests report events to it and compare its orders with those expected.
#include "actors/supervisor/lifecycle.hpp"

#include <string>
#include <variant>
#include <vector>

#include "tests/catch.hpp"

using twill::actors::lifecycle;
using namespace std::chrono_literals;
using phase = lifecycle::phase;

namespace {

/// A state machine with a clock that the test moves.
struct fixture {
  lifecycle machine{lifecycle::delays{1s, 8s}};
  lifecycle::time_point now{lifecycle::time_point{} + 100s};
  std::uint64_t generation = 0;
  lifecycle::time_point wake_at{};

  /// The names of the orders since the last call.
  std::string orders() {
    std::string names;
    for (const auto& order : machine.take_orders()) {
      if (!names.empty()) names += ' ';
      if (std::holds_alternative<lifecycle::start_executor>(order)) names += "start_executor";
      if (const auto* o = std::get_if<lifecycle::load>(&order)) {
        names += o->keep_weights ? "keep" : "load";
        CHECK(o->generation > generation);
        generation = o->generation;
      }
      if (std::holds_alternative<lifecycle::start_compiler>(order)) names += "start_compiler";
      if (std::holds_alternative<lifecycle::start_scheduler>(order)) names += "start_scheduler";
      if (std::holds_alternative<lifecycle::end_scheduler>(order)) names += "end_scheduler";
      if (const auto* o = std::get_if<lifecycle::serve>(&order)) {
        names += "serve";
        CHECK(o->generation == generation);
      }
      if (std::holds_alternative<lifecycle::move_requests>(order)) names += "move";
      if (std::holds_alternative<lifecycle::end_requests>(order)) names += "end_requests";
      if (const auto* o = std::get_if<lifecycle::wake>(&order)) {
        names += "wake";
        wake_at = o->at;
      }
    }
    return names;
  }
  void start() {
    machine.begin();
    CHECK(orders() == "start_executor load");
    machine.loaded(generation, now);
    CHECK(orders() == "start_compiler start_scheduler serve");
    CHECK(machine.now() == phase::ready);
  }
  void wait_for_wake() {
    now = wake_at;
    machine.woken(now);
  }
};

} // namespace

TEST_CASE("a first load that fails is final", "[supervisor]") {
  fixture r;
  r.machine.begin();
  CHECK(r.orders() == "start_executor load");
  CHECK(r.machine.now() == phase::loading);
  r.machine.load_failed(r.generation, "no such file", r.now);
  CHECK(r.orders().empty());
  CHECK(r.machine.now() == phase::failed);
  CHECK(r.machine.detail() == "no such file");
}

TEST_CASE("the first failure is mended at once, the next ones after longer and longer times",
          "[supervisor]") {
  fixture r;
  r.start();
  r.machine.step_failed(r.generation, "EIO", r.now);
  CHECK(r.machine.now() == phase::restarting);
  CHECK(r.orders() == "load");
  std::vector<double> waited;
  for (int i = 0; i < 4; ++i) {
    r.machine.load_failed(r.generation, "EIO", r.now);
    CHECK(r.machine.now() == phase::restarting);
    CHECK(r.machine.detail().find("EIO") != std::string::npos);
    CHECK(r.orders() == "wake");
    waited.push_back(std::chrono::duration<double>(r.wake_at - r.now).count());
    r.machine.woken(r.now); // before the delay is over, nothing happens
    CHECK(r.orders().empty());
    r.wait_for_wake();
    CHECK(r.orders() == "load");
  }
  CHECK(waited == std::vector<double>{1, 2, 4, 8});
  r.machine.loaded(r.generation, r.now);
  CHECK(r.orders() == "serve"); // the batcher was not replaced
  CHECK(r.machine.now() == phase::ready);
  CHECK(r.machine.detail().empty());
}

TEST_CASE("one failed reload does not end the engine", "[supervisor]") {
  fixture r;
  r.start();
  r.machine.step_failed(r.generation, "a", r.now);
  r.orders();
  r.machine.load_failed(r.generation, "b", r.now);
  CHECK(r.machine.now() == phase::restarting);
  CHECK(r.orders() == "wake");
}

TEST_CASE("after six failures in a row requests end, and tries go on", "[supervisor]") {
  fixture r;
  r.start();
  r.machine.step_failed(r.generation, "broken", r.now);
  r.orders();
  for (int i = 0; i < 4; ++i) {
    r.machine.load_failed(r.generation, "broken", r.now);
    r.orders();
    r.wait_for_wake();
    r.orders();
  }
  r.machine.load_failed(r.generation, "broken", r.now);
  CHECK(r.machine.now() == phase::failed);
  CHECK(r.orders() == "end_requests wake");
  CHECK(r.machine.detail().find("next try") != std::string::npos);
  for (int i = 0; i < 3; ++i) {
    CHECK(r.wake_at - r.now == 8s);
    r.wait_for_wake();
    CHECK(r.machine.now() == phase::failed);
    CHECK(r.orders() == "load");
    r.machine.load_failed(r.generation, "broken", r.now);
    CHECK(r.orders() == "wake"); // no request is left that could be ended
  }
  r.wait_for_wake();
  r.orders();
  r.machine.loaded(r.generation, r.now); // the weights can be read again
  CHECK(r.orders() == "serve");
  CHECK(r.machine.now() == phase::ready);
}

TEST_CASE("time spent ready takes failures back", "[supervisor]") {
  fixture r;
  r.start();
  for (int i = 0; i < 20; ++i) { // one failure every 20 seconds
    r.now += 20s;
    r.machine.step_failed(r.generation, "now and then", r.now);
    CHECK(r.orders() == "load"); // the first retry has no delay
    r.machine.loaded(r.generation, r.now);
    CHECK(r.orders() == "serve");
  }
  CHECK(r.machine.now() == phase::ready);
}

TEST_CASE("reports of an earlier generation are ignored", "[supervisor]") {
  fixture r;
  r.start();
  const auto old = r.generation;
  r.machine.step_failed(old, "x", r.now);
  CHECK(r.orders() == "load");
  r.machine.step_failed(old, "x", r.now);
  r.machine.loaded(old, r.now);
  r.machine.load_failed(old, "x", r.now);
  CHECK(r.orders().empty());
  CHECK(r.machine.now() == phase::restarting);
  r.machine.loaded(r.generation, r.now);
  CHECK(r.orders() == "serve");
}

TEST_CASE("an executor that ends is made anew", "[supervisor]") {
  fixture r;
  r.start();
  r.machine.executor_ended("exception", r.now);
  CHECK(r.orders() == "start_executor load");
  r.machine.executor_ended("exception", r.now);
  CHECK(r.orders() == "wake");
  r.wait_for_wake();
  CHECK(r.orders() == "start_executor load");
  r.machine.load_failed(r.generation, "busy", r.now);
  CHECK(r.orders() == "wake");
  r.machine.executor_ended("exception", r.now); // no second failure: a retry waits already
  CHECK(r.orders().empty());
  r.wait_for_wake();
  CHECK(r.orders() == "start_executor load");
}

TEST_CASE("a batcher that ends is replaced before requests move to it, and weights are kept",
          "[supervisor]") {
  fixture r;
  r.start();
  r.machine.scheduler_ended("exception", r.now);
  CHECK(r.machine.now() == phase::restarting);
  CHECK(r.orders() == "end_scheduler start_scheduler move keep");
  r.machine.loaded(r.generation, r.now);
  CHECK(r.orders() == "serve");
  CHECK(r.machine.now() == phase::ready);
}

TEST_CASE("a batcher that ends while the executor loads waits for that load", "[supervisor]") {
  fixture r;
  r.start();
  r.machine.step_failed(r.generation, "x", r.now);
  CHECK(r.orders() == "load");
  r.machine.scheduler_ended("exception", r.now);
  CHECK(r.orders() == "end_scheduler start_scheduler move");
  r.machine.loaded(r.generation, r.now);
  CHECK(r.orders() == "serve");
}

TEST_CASE("a batcher that keeps ending is given up through the sessions, and made anew later",
          "[supervisor]") {
  fixture r;
  r.start();
  for (int i = 0; i < lifecycle::most_strikes; ++i) {
    r.machine.scheduler_ended("exception", r.now);
    r.orders();
    r.machine.loaded(r.generation, r.now);
    r.orders();
  }
  r.machine.scheduler_ended("exception", r.now);
  CHECK(r.machine.now() == phase::failed);
  CHECK(r.orders() == "end_scheduler end_requests wake"); // no order for the batcher that ended
  r.machine.executor_ended("exception", r.now);
  r.machine.scheduler_ended("exception", r.now);
  CHECK(r.orders().empty());
  r.wait_for_wake();
  CHECK(r.orders() == "start_executor load");
  r.machine.loaded(r.generation, r.now);
  CHECK(r.orders() == "start_scheduler serve");
}

TEST_CASE("a compiler of grammars that ends is replaced, and the engine stays ready",
          "[supervisor]") {
  fixture r;
  r.start();
  r.machine.compiler_ended();
  CHECK(r.orders() == "start_compiler move");
  CHECK(r.machine.now() == phase::ready);
}

TEST_CASE("nothing is tried again once the device is lost", "[supervisor]") {
  fixture r;
  r.start();
  r.machine.device_lost(r.generation - 1, "of an earlier life");
  CHECK(r.machine.now() == phase::ready);
  SECTION("by a step") {}
  SECTION("by a load") {
    r.machine.step_failed(r.generation, "EIO", r.now);
    CHECK(r.orders() == "load");
  }
  SECTION("while a retry waits") {
    r.machine.step_failed(r.generation, "EIO", r.now);
    CHECK(r.orders() == "load");
    r.machine.load_failed(r.generation, "EIO", r.now);
    CHECK(r.orders() == "wake");
  }
  r.machine.device_lost(r.generation, "an illegal address");
  CHECK(r.orders() == "end_requests");
  CHECK(r.machine.now() == phase::lost);
  CHECK(r.machine.detail() == "the device is lost: an illegal address");
  r.machine.device_lost(r.generation, "again");
  r.machine.step_failed(r.generation, "again", r.now);
  r.machine.load_failed(r.generation, "again", r.now);
  r.machine.loaded(r.generation, r.now);
  r.machine.executor_ended("again", r.now);
  r.machine.scheduler_ended("again", r.now);
  r.machine.compiler_ended();
  r.machine.woken(r.now + 1000s);
  CHECK(r.orders().empty());
  CHECK(r.machine.now() == phase::lost);
  r.machine.stop();
  CHECK(r.machine.now() == phase::stopped);
}

TEST_CASE("a stopped engine answers no fact", "[supervisor]") {
  fixture r;
  r.start();
  r.machine.stop();
  r.machine.step_failed(r.generation, "x", r.now);
  r.machine.executor_ended("x", r.now);
  r.machine.scheduler_ended("x", r.now);
  r.machine.loaded(r.generation, r.now);
  r.machine.woken(r.now + 1h);
  CHECK(r.orders().empty());
  CHECK(r.machine.now() == phase::stopped);
}

TEST_CASE("whatever happens in whatever order, the machine ends up ready once nothing fails",
          "[supervisor]") {
  std::uint64_t random = 7;
  const auto next = [&](int n) {
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<int>((random >> 33) % static_cast<std::uint64_t>(n));
  };
  for (int round = 0; round < 300; ++round) {
    fixture r;
    r.start();
    bool loading = false;
    const auto look = [&] {
      const std::string orders = r.orders();
      if (orders.find("load") != std::string::npos || orders.find("keep") != std::string::npos)
        loading = true;
    };
    for (int i = 0; i < 30; ++i) {
      r.now += std::chrono::milliseconds(next(3000));
      const int what = next(6);
      if (what == 0) r.machine.step_failed(r.generation, "x", r.now);
      if (what == 1) r.machine.scheduler_ended("x", r.now);
      if (what == 2) r.machine.executor_ended("x", r.now);
      if (what == 3 && loading) r.machine.load_failed(r.generation, "x", r.now);
      if (what == 4 && loading) r.machine.loaded(r.generation, r.now);
      if (what == 5) r.machine.woken(r.now);
      if (what >= 2 && what <= 4) loading = false;
      look();
    }
    for (int i = 0; i < 10 && r.machine.now() != phase::ready; ++i) {
      r.now += 10s;
      r.machine.woken(r.now);
      look();
      if (loading) r.machine.loaded(r.generation, r.now);
      loading = false;
      look();
    }
    INFO("round " << round << ": " << r.machine.detail());
    REQUIRE(r.machine.now() == phase::ready);
  }
}
