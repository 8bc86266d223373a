// Which GPU a process uses, and what it says of one that its kernels are not for.
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

TEST_CASE("a GPU that Kokkos or the kernels were not built for is refused with both named") {
  CHECK(check_kokkos_arch(80, 90, "GPU 0 (H100)").ok());
  CHECK(check_kokkos_arch(90, 90, "GPU 0 (H100)").ok());
  CHECK(check_kokkos_arch(0, 75, "GPU 0 (T4)").ok());
  const auto newer = check_kokkos_arch(90, 80, "GPU 0 (A100)");
  REQUIRE_FALSE(newer.ok());
  CHECK(newer.code() == gpu::errc::not_built);
  CHECK(newer.detail() ==
        "this build's Kokkos is for GPUs of compute capability 9.0 or later, but GPU 0 (A100) has "
        "8.0: build with a Kokkos for it, or set device.kind = \"host\"");
  const int built[] = {80, 86, 120};
  CHECK(no_kernels_for(built, 75, "GPU 1 (T4)").detail ==
        "this build's kernels are for GPUs of compute capability 8.0, 8.6, 12.0, but GPU 1 (T4) "
        "has 7.5: build with -DCMAKE_CUDA_ARCHITECTURES=75, or set device.kind = \"host\"");
}
