// Chooses the device that tests run on by the environment variable TWILL_TEST_DEVICE: "host" hides
// GPUs, "cuda" runs every test on a GPU and fails if there is none, and "auto", the default, takes
// a GPU if this build supports GPUs and the machine has one.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "gpu/detail/launches.hpp"
#include "gpu/detail/space.hpp"
#include "gpu/device.hpp"

namespace twill::test {

/// The devices to test: "auto", "host" or "cuda" (TWILL_TEST_DEVICE).
inline std::string tested_kind() {
  const char* given = std::getenv("TWILL_TEST_DEVICE");
  return given == nullptr ? "auto" : given;
}

/// Whether tests that compare the host's own implementations run: not with "cuda".
inline bool tests_host() {
  return tested_kind() != "cuda";
}

/// Whether tests run on a GPU.
inline bool tests_cuda() {
  return tested_kind() == "cuda" || (tested_kind() == "auto" && gpu::detail::cuda_is_present());
}

/// Makes the process print how many kernels it launched on GPUs when it ends.
inline void report_launches() {
  [[maybe_unused]] static const int registered = std::atexit([] {
    std::printf("kernels launched on the GPU: %lld\n",
                static_cast<long long>(gpu::detail::launches.load()));
  });
}

/// Opens the tested device. If it is a GPU, the process prints at its end how many kernels it
/// launched on GPUs (report_launches()). Throws std::runtime_error if the device cannot be opened.
inline std::unique_ptr<gpu::device> open_tested(gpu::device_config config = {}) {
  config.kind = tested_kind();
  auto opened = gpu::device::open(config);
  if (!opened.ok()) throw std::runtime_error(opened.detail());
  if (opened.value()->info().kind == "cuda") report_launches();
  return std::move(opened.value());
}

} // namespace twill::test
