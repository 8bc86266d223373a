// linear() with 16-bit activations; and linear() in f16 and bf16 with values that one of the two
// types cannot represent.
#include "tests/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "gpu/detail/linear_backend.hpp"
#include "gpu/detail/op_backends.hpp"
#include "gpu/rows/elementwise.hpp"
#include "tests/gpu/implementations.hpp"
#include "tests/gpu/linear/linear_fixture.hpp"

using namespace twill::gpu;
using namespace twill::gpu::test;

namespace {

constexpr std::pair<compute_type, dtype> halves[] = {{compute_type::f16, dtype::f16},
                                                     {compute_type::bf16, dtype::bf16}};

std::vector<std::uint16_t> rounded(const std::vector<float>& x, dtype type) {
  std::vector<std::uint16_t> to;
  for (const float v : x)
    to.push_back(type == dtype::f16 ? detail::f32_to_f16(v) : detail::f32_to_bf16(v));
  return to;
}

/// A matrix of each kind of weights; grouped ones with each form of offsets.
std::vector<matrix> matrices(std::int64_t cols) {
  std::vector<matrix> all;
  for (const weight_kind kind : {weight_kind::f32, weight_kind::f16, weight_kind::bf16})
    all.push_back(random_matrix(kind, 37, cols, 0, offsets::stored_f16, 1));
  if (cols % 8 != 0) return all;
  for (const weight_kind kind : {weight_kind::grouped_u4, weight_kind::grouped_u8})
    for (const offsets form : {offsets::stored_f32, offsets::factored, offsets::zero_points})
      all.push_back(random_matrix(kind, 37, cols, static_cast<std::int32_t>(cols) / 2, form, 2));
  return all;
}

weight_source reversed(const matrix& w) {
  auto order = std::make_shared<std::vector<std::int32_t>>();
  for (std::int64_t k = w.cols; k-- > 0;)
    order->push_back(static_cast<std::int32_t>(k));
  weight_source source = w.source();
  source.column_order = std::move(order);
  return source;
}

/// A call whose rows of x lie `stride` elements apart.
linear_args args_of(const packed_matrix& w, const buffer& x, dtype type, std::int64_t m,
                    std::int64_t stride, const buffer& out, compute_type compute) {
  linear_args args;
  args.x = view_2d(x.data(), type, m, w.cols(), stride);
  args.weights = &w;
  args.out = view_2d(out.data(), dtype::f32, m, w.rows());
  args.compute = compute;
  return args;
}

} // namespace

TEST_CASE("x in 16 bits gives the bits of an x in f32 that linear rounds, for every kind") {
  for (const int implementation : twill::test::implementations()) {
    auto dev = twill::test::open_implementation(implementation);
    const auto& own = dev->ops().get<detail::linear_backend>();
    const auto& portable = dev->ops().portable->get<detail::linear_backend>();
    for (const std::int64_t cols : {std::int64_t{96}, std::int64_t{33}})
      for (const matrix& w : matrices(cols))
        for (const bool ordered : {false, true})
          for (const auto& [compute, type] : halves)
            for (const std::int64_t m : {1, 3, 9})
              for (const std::int64_t stride : {cols, cols + 3}) {
                CAPTURE(twill::test::name_of_implementation(implementation), name_of(w.kind), cols,
                        ordered, name_of(compute), m, stride);
                const auto packed = pack(*dev, ordered ? reversed(w) : w.source(), "w").value();
                const auto values = spiky_floats(m * stride, 3);
                const buffer floats = to_device(*dev, values);
                const buffer narrow = to_device(*dev, rounded(values, type));
                const auto n = static_cast<std::size_t>(m * w.rows);
                const buffer out = dev->allocate(n * 4, "out").value();
                // If the device's own implementation does not read 16-bit activations, linear()
                // uses the portable implementation.
                const linear_args wide =
                    args_of(packed, floats, dtype::f32, m, stride, out, compute);
                const bool owned = own.supports(packed.get().view, compute) && own.reads_halves;
                (owned ? own : portable).run(*dev, wide);
                const auto want = to_host(*dev, out, n);
                linear(*dev, args_of(packed, narrow, type, m, stride, out, compute));
                const auto actual = to_host(*dev, out, n);
                REQUIRE(std::memcmp(actual.data(), want.data(), n * 4) == 0);
              }
  }
}

TEST_CASE("linear_silu_mul writes and reads 16 bits as its two ops do") {
  struct shape {
    std::int64_t rows, m;
  };
  for (const int implementation : twill::test::implementations()) {
    auto dev = twill::test::open_implementation(implementation);
    // The last is large enough for a GPU's kernel for prompts.
    for (const auto& [rows, m] : {shape{64, 1}, shape{64, 5}, shape{5120, 130}}) {
      const matrix w =
          random_matrix(weight_kind::grouped_u4, rows, 96, 32, offsets::zero_points, 4);
      const auto packed = pack(*dev, w.source(), "w").value();
      const auto n = static_cast<std::size_t>(m * rows / 2);
      for (const auto& [compute, type] : halves) {
        const auto values = random_floats(m * w.cols, 5);
        const buffer x = to_device(*dev, rounded(values, type));
        const buffer both = dev->allocate(2 * n * 4, "both").value();
        const buffer apart = dev->allocate(n * 4, "apart").value();
        const buffer at_once = dev->allocate(n * 2, "out").value();
        const linear_args args = args_of(packed, x, type, m, w.cols, both, compute);
        linear(*dev, args);
        silu_mul(*dev, args.out, view_2d(apart.data(), dtype::f32, m, rows / 2));
        linear_silu_mul(*dev, args, view_2d(at_once.data(), type, m, rows / 2));
        std::vector<std::uint16_t> actual(n);
        dev->fence();
        dev->download(actual.data(), at_once.data(), n * 2);
        CAPTURE(twill::test::name_of_implementation(implementation), name_of(compute), rows, m);
        CHECK(actual == rounded(to_host(*dev, apart, n), type));
      }
    }
  }
}

TEST_CASE("activations of 1e5 overflow f16 and are within bf16's rounding in bf16") {
  for (const int implementation : twill::test::implementations()) {
    auto dev = twill::test::open_implementation(implementation);
    for (const matrix& w : matrices(96)) {
      CAPTURE(twill::test::name_of_implementation(implementation), name_of(w.kind));
      const auto packed = pack(*dev, w.source(), "w").value();
      auto x = random_floats(3 * w.cols, 6);
      for (std::size_t i = 0; i < x.size(); i += 16)
        x[i] = i % 32 == 0 ? 1e5F : -1e5F;
      const oracle want = exact(w, x, 3, compute_type::bf16);
      const auto in_bf16 = run_linear(*dev, packed, x, 3, compute_type::bf16);
      for (std::size_t i = 0; i < in_bf16.size(); ++i)
        REQUIRE(std::abs(in_bf16[i] - want.value[i]) <= want.bound[i]);
      const auto in_f16 = run_linear(*dev, packed, x, 3, compute_type::f16);
      CHECK(std::none_of(in_f16.begin(), in_f16.end(), [](float y) { return std::isfinite(y); }));
    }
  }
}

TEST_CASE("f16 weights stay f16 where f16 is the one compute type, and give the same bits") {
  for (const int implementation : twill::test::implementations()) {
    auto dev = twill::test::open_implementation(implementation);
    const matrix w = random_matrix(weight_kind::f16, 53, 100, 0, offsets::stored_f16, 21);
    weight_source source = w.source();
    source.only_compute = compute_type::f16;
    const auto packed = pack(*dev, source, "w").value();
    CHECK(packed.get().view.kind == weight_kind::f16);
    const auto as_stored = pack(*dev, w.source(), "w").value();
    const auto x = random_floats(3 * w.cols, 22);
    CHECK(run_linear(*dev, packed, x, 3, compute_type::f16) ==
          run_linear(*dev, as_stored, x, 3, compute_type::f16));
  }
}
