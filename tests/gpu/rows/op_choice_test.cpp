// Which implementation computes an op: the device's own if it supports the arguments, otherwise the
// portable one.
#include "tests/catch.hpp"

#include <cmath>
#include <cstdint>
#include <vector>

#include "gpu/detail/linear_backend.hpp"
#include "gpu/detail/op_backends.hpp"
#include "gpu/detail/rows_backend.hpp"
#include "gpu/rows/detail/elementwise_kernels.hpp"
#include "gpu/rows/elementwise.hpp"
#include "tests/gpu/ragged_case.hpp"

using namespace twill;
using namespace twill::gpu::detail;
using gpu::device;

namespace {

int calls = 0;

void counted(device&, const silu_mul_span&, long, long) {
  ++calls;
}
bool narrow(const device&, const silu_mul_span&, long, long cols) {
  return cols <= 4;
}

/// silu_mul of at most four columns, and nothing else.
constexpr rows_backend few_rows{.silu_mul = {counted, narrow}};

float relu_of(device& dev, float x) {
  test::device_array<float> values(dev, {x});
  gpu::activate(dev, gpu::view_2d(values.data(), gpu::dtype::f32, 1, 1), gpu::activation::relu);
  return values.get()[0];
}

std::vector<float> silu_mul_of(device& dev, std::int64_t cols) {
  test::device_array<float> from(dev, std::vector<float>(static_cast<std::size_t>(2 * cols), 2.0F));
  test::device_array<float> to(dev, std::vector<float>(static_cast<std::size_t>(cols), -7.0F));
  gpu::silu_mul(dev, gpu::view_2d(from.data(), gpu::dtype::f32, 1, 2 * cols),
                gpu::view_2d(to.data(), gpu::dtype::f32, 1, cols));
  return to.get();
}

} // namespace

TEST_CASE("an op runs by the device's own table where that supports it, else by the portable one") {
  const op_backends& rest = portable_backends();
  const op_backends ops{{&rest.get<linear_backend>(), &rest.get<attention_backend>(),
                         &rest.get<sampling_backend>(), &few_rows, &rest.get<probe_backend>()},
                        &rest};
  auto dev = device::open({.kind = "host", .threads = 1, .ops = &ops}).value();
  calls = 0;
  CHECK(silu_mul_of(*dev, 4) == std::vector<float>(4, -7.0F));
  CHECK(calls == 1);
  const std::vector<float> wide = silu_mul_of(*dev, 5);
  CHECK(calls == 1);
  CHECK(wide[4] == Approx(2 * 2 / (1 + std::exp(-2.0))));
  CHECK(relu_of(*dev, -3) == 0); // an op that the table does not have
}

TEST_CASE("a portable table is its own rest") {
  CHECK(portable_backends().portable == &portable_backends());
  CHECK(host_backends().portable == &portable_backends());
}
