#include "tests/catch.hpp"

#include <cstdint>

#include "gpu/linear/cuda/gemm_plan.hpp"

using namespace twill::gpu::cuda;

namespace {

constexpr prefill_block small{256, 32, 1.3}, large{256, 64, 1};
constexpr std::int64_t a100 = 108; ///< multiprocessors

gemm_form form_of(std::int64_t outputs, std::int64_t m) {
  return plan_gemm(outputs, m, a100, small, large);
}

} // namespace

TEST_CASE("cuda products of up to 32 rows go through the kernel for few") {
  for (const std::int64_t outputs : {1, 4096, 152064})
    for (const std::int64_t m : {1, 8, 32})
      CHECK(form_of(outputs, m) == gemm_form::decode);
}

TEST_CASE("cuda products of a prompt go through the larger blocks where they fill the GPU") {
  for (const std::int64_t outputs : {4096, 6144, 27392, 28672, 152064})
    for (const std::int64_t m : {1024, 2048, 8192})
      CHECK(form_of(outputs, m) == gemm_form::prefill_large);
}

TEST_CASE("cuda products go through blocks that keep more of the GPU busy") {
  // 16 large blocks would leave 92 multiprocessors idle.
  CHECK(form_of(4096, 64) == gemm_form::decode);
  // 128 large blocks are two waves of 108, and 256 small ones are three that are half as long.
  CHECK(form_of(4096, 512) == gemm_form::prefill_small);
  // 107 large blocks are one wave, though half of their rows are not there.
  CHECK(form_of(27392, 33) == gemm_form::prefill_large);
  CHECK(form_of(6912, 128) == gemm_form::prefill_small);
}

TEST_CASE("cuda products take no plan that costs more than another") {
  const auto waves = [](const prefill_block& of, std::int64_t outputs, std::int64_t m) {
    const std::int64_t n = (of.count(outputs, m) + a100 - 1) / a100;
    return of.cost * static_cast<double>(n * a100 * of.outputs * of.rows);
  };
  for (std::int64_t outputs = 100; outputs < 40000; outputs += 777)
    for (std::int64_t m = 33; m < 3000; m += 51) {
      const double costs[] = {decode_cost * static_cast<double>((m + 31) / 32 * 32 * outputs),
                              waves(small, outputs, m), waves(large, outputs, m)};
      const double taken = costs[static_cast<int>(form_of(outputs, m))];
      REQUIRE((taken <= costs[0] && taken <= costs[1] && taken <= costs[2]));
    }
}
