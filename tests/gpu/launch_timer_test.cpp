#include "tests/catch.hpp"

#include <algorithm>

#include "gpu/launch_timer.hpp"
#include "gpu/peak_rates.hpp"

using namespace twill::gpu;

TEST_CASE("a host's launches are timed one by one, at least as often as was asked for") {
  auto dev = device::open({.kind = "host", .threads = 1}).value();
  std::size_t calls = 0;
  const auto work = [&] {
    ++calls;
    volatile double sum = 0;
    for (int i = 0; i < 1000; ++i)
      sum = sum + 1;
  };
  const launch_times times = time_launches(*dev, {.samples = 25, .seconds = 0.05}, work);
  CHECK(times.how == timed_by::clock);
  CHECK(times.seconds.size() >= 25);
  CHECK(calls == times.seconds.size() + 1); // the first call is not measured
  CHECK(std::is_sorted(times.seconds.begin(), times.seconds.end()));
  CHECK(times.least() > 0);
  CHECK(times.least() <= times.median());
  CHECK(times.median() <= times.most());
}

TEST_CASE("slow launches are timed three times, whatever the time they were given") {
  auto dev = device::open({.kind = "host", .threads = 1}).value();
  CHECK(time_launches(*dev, {.seconds = 0}, [] {}).seconds.size() == 3);
}

TEST_CASE("memory is read and copied at some speed") {
  auto dev = device::open({.kind = "host"}).value();
  CHECK(cache_bytes(*dev) > 0);
  const auto probe = memory_probe::make(*dev).value();
  CHECK(probe.read_bytes_per_s() > 0);
  CHECK(probe.copy_bytes_per_s() > 0);
}
