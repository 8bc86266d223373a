// Error messages for a GPU that is absent, or for which a build has no kernels.
#include "gpu/detail/gpu_refusals.hpp"

#include "tests/catch.hpp"

using namespace twill;
using namespace twill::gpu::detail;

TEST_CASE("a GPU that Kokkos or the kernels were not built for is refused with both named") {
  CHECK(check_kokkos_arch(80, 90, "GPU 0 (H100)").ok());
  CHECK(check_kokkos_arch(90, 90, "GPU 0 (H100)").ok());
  CHECK(check_kokkos_arch(0, 75, "GPU 0 (T4)").ok());
  const auto newer = check_kokkos_arch(90, 80, "GPU 0 (A100)");
  REQUIRE_FALSE(newer.ok());
  CHECK(newer.code() == gpu::errc::not_built);
  CHECK(newer.detail() ==
        "this build's Kokkos is for GPUs of compute capability 9.0 or later, but GPU 0 (A100) has "
        "8.0: build with `TWILL_CUDA_ARCH=80 tools/build cuda`, or set device.kind = \"host\"");
  const int built[] = {80, 86, 120};
  CHECK(no_kernels_for(built, 75, "GPU 1 (T4)").detail ==
        "this build's kernels are for GPUs of compute capability 8.0, 8.6, 12.0, but GPU 1 (T4) "
        "has 7.5: set device.kind = \"host\": twill has no kernels for GPUs older than 8.0");
  CHECK(no_kernels_for(built, 90, "GPU 1 (H100)").detail ==
        "this build's kernels are for GPUs of compute capability 8.0, 8.6, 12.0, but GPU 1 (H100) "
        "has 9.0: build with `TWILL_CUDA_ARCH=90 tools/build cuda`, or set device.kind = \"host\"");
}

TEST_CASE("where there is no GPU, the error says why and what to do") {
  const auto none = no_gpu(0, 13000, "CUDA driver version is insufficient");
  CHECK(none.code == gpu::errc::not_built);
  CHECK(
      none.detail ==
      "device.kind = \"cuda\" needs NVIDIA's driver for CUDA 13.0, and this machine has no driver: "
      "install it, so that nvidia-smi lists the GPU, or set device.kind = \"host\"");
  CHECK(no_gpu(12040, 13010, "CUDA driver version is insufficient").detail ==
        "device.kind = \"cuda\" needs a driver for CUDA 13.1 in this build, and this machine's is "
        "for CUDA 12.4: update it, build twill with CUDA 12, or set device.kind = \"host\"");
  // A driver for CUDA 12.2 runs programs built with 12.9, so the fault is a missing GPU.
  CHECK(no_gpu(12020, 12090, "no CUDA-capable device is detected").detail ==
        "device.kind = \"cuda\" needs a GPU, and CUDA says \"no CUDA-capable device is detected\": "
        "nvidia-smi must list it and CUDA_VISIBLE_DEVICES must not hide it, or set device.kind = "
        "\"host\"");
  CHECK(no_gpu(13000, 12090, "no device").detail.find("\"no device\"") != std::string::npos);
}
