// Measures how much of a host device's memory was never touched, with pages that this test writes.
#include "gpu/memory_meter.hpp"

#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>

#include "config/base/units.hpp"
#include "gpu/device.hpp"
#include "tests/catch.hpp"

using namespace twill;

namespace {

/// Waits until the answer changes: the meter repeats an answer for a while before it looks again.
std::int64_t untouched_later(const gpu::memory_meter& meter, std::int64_t before) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (meter.untouched_bytes() == before && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return meter.untouched_bytes();
}

} // namespace

TEST_CASE("reserved memory of a host is untouched until it is written") {
  const auto dev = gpu::device::open({.kind = "host", .memory_bytes = 64 * gib}).value();
  const auto meter = gpu::meter_of(*dev);
  REQUIRE(meter != nullptr);
  CHECK(meter->untouched_bytes() == 0);
  auto memory = dev->allocate(1 * gib + 100, "arena").value();
  auto scratch_bytes = 3 * mib;
  REQUIRE(dev->reserve_scratch(static_cast<std::size_t>(scratch_bytes)).ok());
  const std::int64_t all = 1 * gib + 100 + scratch_bytes;
  CHECK(meter->untouched_bytes() == all);

  std::memset(static_cast<char*>(memory.data()) + 512 * mib, 1, 20 * mib);
  const std::int64_t left = untouched_later(*meter, all);
  // Systems that give out huge pages for everything take up to two more.
  CHECK(left <= all - 20 * mib);
  CHECK(left >= all - 24 * mib);

  // Weights are written whole when they are loaded, so that none of them counts as untouched.
  const auto weights = dev->allocate(5 * mib, "w", gpu::page_hint::filled_at_once).value();
  CHECK(dev->memory_used() == all + 5 * mib);
  CHECK(meter->untouched_bytes() == left);
  memory = gpu::buffer();
  CHECK(meter->untouched_bytes() == scratch_bytes);
}

TEST_CASE("much memory is measured by an even sample") {
  const auto dev = gpu::device::open({.kind = "host", .memory_bytes = 64 * gib}).value();
  const auto meter = gpu::meter_of(*dev);
  const auto memory = dev->allocate(40 * gib, "arena").value();
  CHECK(meter->untouched_bytes() == 40 * gib);
  std::memset(memory.data(), 1, 256 * mib);
  const auto left = untouched_later(*meter, 40 * gib);
  CHECK(left < 40 * gib - 128 * mib);
  CHECK(left > 40 * gib - 512 * mib);
}

TEST_CASE("a meter that outlives its device measures nothing") {
  std::shared_ptr<const gpu::memory_meter> meter;
  {
    const auto dev = gpu::device::open({.kind = "host"}).value();
    meter = gpu::meter_of(*dev);
    const auto memory = dev->allocate(8 * mib, "arena").value();
    CHECK(meter->untouched_bytes() == 8 * mib);
  }
  CHECK(meter->untouched_bytes() == 0);
}
