#include "tests/catch.hpp"

#include <cstdint>
#include <vector>

#include "gpu/linear/cuda/to_16_bits.hpp"
#include "tests/gpu/cuda/gemm_harness.hpp"

using namespace twill::gpu;
using namespace twill::gpu::test;

namespace {

struct weights_case {
  weight_kind kind;
  std::int32_t group;
  offsets form;
};
constexpr weights_case all_weights[] = {
    {weight_kind::f16, 0, offsets::factored},
    {weight_kind::bf16, 0, offsets::factored},
    {weight_kind::grouped_u4, 128, offsets::zero_points},
    {weight_kind::grouped_u4, 64, offsets::zero_points},
    {weight_kind::grouped_u4, 32, offsets::zero_points},
    {weight_kind::grouped_u4, 128, offsets::factored},
    {weight_kind::grouped_u4, 64, offsets::zero_points_f32},
    {weight_kind::grouped_u4, 32, offsets::stored_f16},
    {weight_kind::grouped_u4, 32, offsets::stored_f32},
};

} // namespace

TEST_CASE("cuda products of packed weights agree with a naive product, emulated") {
  auto dev = device::open({.kind = "host", .threads = 1}).value();
  const auto [kind, group, form] =
      GENERATE(from_range(std::begin(all_weights), std::end(all_weights)));
  struct shape {
    std::int64_t rows, cols, m;
  };
  for (const auto& [rows, cols, m] : {shape{1, 128, 1}, shape{33, 384, 3}, shape{70, 128, 17},
                                      shape{32, 1152, 8}, shape{20, 256, 11}})
    for (const bool bf16 : {false, true}) {
      if (kind == weight_kind::f16 && bf16) continue;
      if (kind == weight_kind::bf16 && !bf16) continue;
      CAPTURE(static_cast<int>(kind), group, static_cast<int>(form), rows, cols, m, bf16);
      const matrix w = random_matrix(kind, rows, cols, group, form, 2);
      const auto packed = pack(*dev, w.source(), "w").value();
      check_product(w, packed.get().view, m, bf16);
    }
}

TEST_CASE("cuda products sum a row in one order, alone and among any rows, emulated") {
  auto dev = device::open({.kind = "host", .threads = 1}).value();
  const auto [kind, group, form] =
      GENERATE(from_range(std::begin(all_weights), std::end(all_weights)));
  const std::int64_t rows = 64, cols = 1152; // nine segments: eight slices, three of them empty
  const bool bf16 = kind != weight_kind::f16;
  CAPTURE(static_cast<int>(kind), group, static_cast<int>(form));
  const matrix w = random_matrix(kind, rows, cols, group, form, 2);
  const auto packed = pack(*dev, w.source(), "w").value();
  check_order(packed.get().view, 33, bf16);
}

TEST_CASE("cuda products take strided rows, bias and what is there, emulated") {
  auto dev = device::open({.kind = "host", .threads = 1}).value();
  for (const weight_kind kind : {weight_kind::grouped_u4, weight_kind::f16}) {
    const matrix w = random_matrix(kind, 37, 256, 64, offsets::zero_points, 3);
    check_strided(w, pack(*dev, w.source(), "w").value().get().view, 9, false);
  }
}

TEST_CASE("cuda products of bf16 keep activations that f16 has no room for, emulated") {
  auto dev = device::open({.kind = "host", .threads = 1}).value();
  for (const weight_kind kind : {weight_kind::grouped_u4, weight_kind::bf16}) {
    const matrix w = random_matrix(kind, 32, 256, 32, offsets::stored_f16, 3);
    check_large(w, pack(*dev, w.source(), "w").value().get().view);
  }
}

TEST_CASE("cuda products take zero points far above the codes, emulated") {
  auto dev = device::open({.kind = "host", .threads = 1}).value();
  for (const int zero : {127, 128, 201, 255}) {
    CAPTURE(zero);
    matrix w = random_matrix(weight_kind::grouped_u4, 32, 128, 32, offsets::zero_points, 3);
    for (std::size_t g = 0; g < w.scales.size(); ++g)
      set_zero(w, g, zero - static_cast<int>(g % 2));
    const auto packed = pack(*dev, w.source(), "w").value();
    for (const bool bf16 : {false, true}) {
      call c = random_call(packed.get().view, 1, bf16);
      emulate(packed.get().view, c);
      check(c, exact(w, c.x, 1, compute_type::f32));
    }
  }
}

TEST_CASE("cuda activations of other types, orders and places become rows of 16 bits, emulated") {
  const std::int64_t m = 3, cols = 1032, stride = 1035;
  const std::vector<float> x = spiky_floats(m * stride, 4);
  std::vector<std::uint16_t> halves;
  for (const float value : x)
    halves.push_back(detail::f32_to_f16(value));
  std::vector<std::int32_t> order;
  for (std::int32_t k = 0; k < cols; ++k)
    order.push_back((k * 7 + 5) % static_cast<std::int32_t>(cols));
  for (const bool ordered : {false, true})
    for (const int form : {0, 1, 2}) { // f32 to f16, f32 to bf16, f16 as it is
      CAPTURE(ordered, form);
      std::vector<std::uint16_t> to(static_cast<std::size_t>(m * cols));
      const cuda::to_16_bits_args args{.x = form == 2 ? static_cast<const void*>(halves.data())
                                                      : x.data(),
                                       .x_stride = stride,
                                       .order = ordered ? order.data() : nullptr,
                                       .to = to.data(),
                                       .m = static_cast<int>(m),
                                       .cols = static_cast<int>(cols)};
      twill::test::run_grid(
          {.blocks = static_cast<int>(cuda::to_16_bits_blocks(args)),
           .block = {.threads = cuda::to_16_bits_threads,
                     .global = {{x.data(), x.size() * 4, false},
                                {halves.data(), halves.size() * 2, false},
                                {order.data(), order.size() * 4, false},
                                {to.data(), to.size() * 2, true}}}},
          [&](emulated_ptx ptx) {
            if (form == 0)
              cuda::to_16_bits<float, false, emulated_ptx>{ptx, args}.run();
            else if (form == 1)
              cuda::to_16_bits<float, true, emulated_ptx>{ptx, args}.run();
            else
              cuda::to_16_bits<std::uint16_t, false, emulated_ptx>{ptx, args}.run();
          });
      for (std::int64_t r = 0; r < m; ++r)
        for (std::int64_t k = 0; k < cols; ++k) {
          const auto from = static_cast<std::size_t>(
              r * stride + (ordered ? order[static_cast<std::size_t>(k)] : k));
          const std::uint16_t want =
              form == 1 ? detail::f32_to_bf16(x[from]) : detail::f32_to_f16(x[from]);
          REQUIRE(to[static_cast<std::size_t>(r * cols + k)] == want);
        }
    }
}
