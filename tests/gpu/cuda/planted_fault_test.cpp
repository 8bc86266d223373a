// The behaviour after a fault of a GPU. The cases are hidden, since the process cannot compute on
// the GPU afterwards: `test_gpu "[planted]"` runs them, and each case needs a process of its own.
#include "tests/gpu/cuda/planted_fault.hpp"

#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "gpu/sampling/sample.hpp"
#include "tests/catch.hpp"
#include "tests/gpu/tested_device.hpp"

using namespace twill;

TEST_CASE("an illegal address loses the GPU by an error, and the process ends by itself",
          "[.][planted]") {
  auto dev = test::open_tested();
  REQUIRE(dev->info().kind == "cuda");
  const auto memory = dev->allocate(4, "one float").value();
  CHECK_FALSE(dev->is_lost());
  test::plant_illegal_address(*dev);
  CHECK_THROWS_AS(dev->fence(), gpu::device_lost_error);
  CHECK(dev->is_lost());
  std::vector<float> back(1);
  CHECK_THROWS_AS(dev->download(back.data(), memory.data(), 4), gpu::device_lost_error);
  CHECK_THROWS(test::open_tested());
}

// Either the launch throws, or Kokkos ends this process with one line and exit status 1. The script
// that runs the GPU tests (gpu-check) accepts both.
TEST_CASE("an op that is launched after an illegal address is an error too", "[.][planted]") {
  auto dev = test::open_tested();
  REQUIRE(dev->info().kind == "cuda");
  const auto logits = dev->allocate(4, "one logit").value();
  const auto token = dev->allocate(4, "one token").value();
  test::plant_illegal_address(*dev);
  std::this_thread::sleep_for(std::chrono::milliseconds(50)); // until the GPU has met the address
  const auto launch = [&] {
    gpu::argmax(*dev, gpu::view_2d(logits.data(), gpu::dtype::f32, 1, 1),
                static_cast<std::int32_t*>(token.data()));
    dev->fence();
  };
  CHECK_THROWS(launch());
}
