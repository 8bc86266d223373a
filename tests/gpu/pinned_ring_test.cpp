#include "gpu/pinned_ring.hpp"

#include <cstdint>

#include "tests/catch.hpp"
#include "tests/gpu/slow_device.hpp"
#include "tests/gpu/tested_device.hpp"

using namespace twill;

TEST_CASE("a ring's slots lie apart and are used in turn") {
  const auto dev = test::open_tested();
  auto ring = gpu::pinned_ring::create(100, "steps", 3).value();
  unsigned char* slots[3] = {};
  for (unsigned char*& slot : slots) {
    slot = ring.begin().value();
    CHECK(reinterpret_cast<std::uintptr_t>(slot) % 64 == 0);
    for (int i = 0; i < 100; ++i)
      slot[i] = static_cast<unsigned char>(&slot - slots + 1);
    ring.end(*dev);
  }
  for (int turn = 0; turn < 3; ++turn) {
    unsigned char* slot = ring.begin().value();
    CHECK(slot == slots[turn]);
    CHECK(slot[0] == turn + 1);
    CHECK(slot[99] == turn + 1);
    ring.end(*dev);
  }
}

TEST_CASE("a slot is given again only once the device has read it") {
  const auto dev = test::open_tested();
  test::slow_device device;
  auto ring = gpu::pinned_ring::create(100, "steps").value();
  for (int slot = 0; slot < 2; ++slot) { // free: no transfer has used them yet
    REQUIRE(ring.begin().ok());
    ring.end(*dev);
  }
  device.let_pass(1);
  REQUIRE(ring.begin().ok());
  ring.end(*dev);
  device.lose();
  device.let_pass(1);
  const auto refused = ring.begin();
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.code() == gpu::errc::device_lost);
}
