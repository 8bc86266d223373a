// How several models share the memory of their device.
#include "actors/pool/pool_of_files.hpp"

#include <cstdint>

#include "gpu/device.hpp"
#include "gpu/machine.hpp"
#include "tests/catch.hpp"

using twill::actors::pool_budget;

TEST_CASE("models on a GPU share its memory, and not the host's", "[pool]") {
  constexpr std::int64_t on_chip = std::int64_t{79} << 30;
  CHECK(pool_budget(0, [] { return on_chip; }) == on_chip);
  CHECK(pool_budget(1 << 20, [] { return on_chip; }) == 1 << 20);
  const std::int64_t on_host = pool_budget(0, [] { return std::int64_t{0}; });
  const std::int64_t free = twill::gpu::machine::available_bytes(); // other processes may change it
  CHECK(on_host > free / 2);
  CHECK(on_host < free);
}

TEST_CASE("a host and a GPU that is not there have no memory of a chip", "[pool]") {
  using twill::gpu::device;
  CHECK(device::chip_memory({.kind = "host"}) == 0);
  CHECK(device::chip_memory({.kind = "cuda", .id = 4096}) == 0);
}
