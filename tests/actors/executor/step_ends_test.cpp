// step_ends on a device whose steps end only when the test lets them.
#include "actors/executor/step_ends.hpp"

#include <atomic>
#include <new>
#include <thread>

#include "tests/catch.hpp"
#include "tests/gpu/slow_device.hpp"
#include "tests/gpu/tested_device.hpp"

using namespace twill;
using actors::step_ends;

TEST_CASE("ends of steps are reported in order, once the device has reached them", "[actors]") {
  test::slow_device device;
  std::atomic<int> received{0}, wrong{0};
  const auto tells = [&](int number) {
    return [&, number] { wrong += received.exchange(number) == number - 1 ? 0 : 1; };
  };
  const auto dev = test::open_tested({.threads = 1});
  step_ends ends(*dev);
  ends.add(tells(1));
  ends.add(tells(2));
  CHECK(received == 0);
  device.let_pass();
  CHECK(ends.wait().ok());
  CHECK(received < 2);
  ends.add(tells(3));
  device.let_pass(2);
  CHECK(ends.wait().ok());
  CHECK(ends.wait().ok());
  while (received < 3)
    std::this_thread::yield();
  CHECK(wrong == 0);
}

TEST_CASE("a step that the device refuses to end fails, and one under way may be left",
          "[actors]") {
  test::slow_device device;
  const auto dev = test::open_tested({.threads = 1});
  step_ends ends(*dev);
  ends.add([] {});
  device.lose();
  device.let_pass();
  const auto ended = ends.wait();
  REQUIRE_FALSE(ended.ok());
  CHECK(ended.code() == gpu::errc::device_lost);
  ends.add([] {});
  device.let_pass(); // lets the thread end that waits for the device
}

TEST_CASE("the end of a step is reported again if memory was short", "[actors]") {
  test::slow_device device;
  std::atomic<int> asked{0}, received{0};
  const auto dev = test::open_tested({.threads = 1});
  step_ends ends(*dev);
  ends.add([&] {
    if (++asked < 3) throw std::bad_alloc();
    ++received;
  });
  device.let_pass();
  CHECK(ends.wait().ok()); // does not wait for the callback
  while (received == 0)
    std::this_thread::yield();
  CHECK(asked == 3);
}
