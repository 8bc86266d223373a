// The choice of the GPU that a process uses.
#include "gpu/detail/one_gpu.hpp"

#include "tests/catch.hpp"

using namespace twill;
using namespace twill::gpu::detail;

TEST_CASE("a process keeps the GPU that it has started, and may try another until then") {
  one_gpu gpu;
  const auto starts = [] { return gpu::result<nothing>(nothing{}); };
  const auto fails = [] {
    return gpu::result<nothing>(failure{gpu::errc::device_lost, std::string("no")});
  };
  CHECK_FALSE(gpu.use(0, fails).ok());
  REQUIRE(gpu.use(1, starts).ok());
  CHECK(gpu.use(1, starts).ok());
  const auto other = gpu.use(0, starts);
  REQUIRE_FALSE(other.ok());
  CHECK(other.code() == gpu::errc::not_built);
  CHECK(other.detail() == "device.id must stay 1 in this process, got 0");
  CHECK(gpu.use(1, fails).detail() == "no");
  CHECK_FALSE(gpu.use(0, starts).ok());
}
