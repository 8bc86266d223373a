// Runs the products of gpu/linear/cuda in the emulator.
#pragma once

#include "tests/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "gpu/detail/packed_matrix_impl.hpp"
#include "gpu/linear/cuda/gemm_16.hpp"
#include "gpu/linear/cuda/gemm_i8.hpp"
#include "gpu/linear/cuda/gemm_w4.hpp"
#include "gpu/linear/cuda/gemm_w8.hpp"
#include "gpu/linear/cuda/prefill_gemm.hpp"
#include "gpu/linear/cuda/to_8_bits.hpp"
#include "gpu/linear/packed_matrix.hpp"
#include "tests/gpu/cuda/emulator.hpp"
#include "tests/gpu/linear/linear_fixture.hpp"

namespace twill::gpu::test {

using twill::test::block_report;
using twill::test::emulated_ptx;

/// Whether a product is computed by prefill_gemm, and with which of its two tile sizes.
enum class prefill_size : std::uint8_t { none, small, large };

struct call {
  bool bf16 = false;
  bool int8 = false;     ///< activations are rounded by to_8_bits
  bool residual = false; ///< with int8: the residuals are multiplied instead
  bool int8x2 = false;   ///< with int8: the residuals are multiplied as well
  std::int64_t m = 1;
  std::vector<float> x;   // (m, cols), rounded
  std::int64_t extra = 0; ///< elements between rows
  std::vector<float> bias;
  bool accumulate = false;
  bool order_records = false;
  int pairs = 2; ///< pairs of panels in a block, if there are more than 16 rows
  prefill_size prefill = prefill_size::none;
  std::optional<dtype> gated = {};        ///< the type of silu_mul() of the product
  std::int64_t gated_extra = 0;           ///< elements between rows of gated_out
  std::vector<unsigned char> gated_out{}; // (m, rows / 2 + gated_extra) of that type
  std::vector<float> out;                 // (m, rows)
};

inline float rounded(float value, bool bf16) {
  return bf16 ? detail::bf16_to_f32(detail::f32_to_bf16(value)) : via_f16(value);
}

inline call random_call(const detail::packed_view& w, std::int64_t m, bool bf16) {
  call c;
  c.bf16 = bf16;
  c.m = m;
  c.x = spiky_floats(m * w.cols, 5);
  for (float& value : c.x)
    value = rounded(value, bf16);
  c.out.assign(static_cast<std::size_t>(m * w.rows), NAN);
  return c;
}

/// What the kernels read of the activations.
struct activations {
  std::vector<std::uint16_t> halves;
  std::vector<std::int8_t> codes;
  std::vector<float> params;
};

/// Runs a body over all blocks of its shape.
template <class Body>
block_report run_body(const cuda::gemm_args& args, const activations& x, call& c) {
  using shape = typename Body::shape;
  const detail::packed_view& w = args.w;
  block_report sum;
  const auto blocks = static_cast<int>(shape::blocks(w, args.m));
  for (int block = 0; block < blocks; ++block) {
    const auto one = twill::test::run_block(
        {.index = block,
         .threads = shape::threads,
         .shared_bytes = shape::shared_bytes,
         .global = {{w.codes, static_cast<std::size_t>(w.panels * w.codes_stride), false},
                    {w.scales, static_cast<std::size_t>(w.panels * w.scales_stride), false},
                    {x.halves.data(), x.halves.size() * 2, false},
                    {x.codes.data(), x.codes.size(), false},
                    {x.params.data(), x.params.size() * 4, false},
                    {c.bias.data(), c.bias.size() * 4, false},
                    {c.out.data(), c.out.size() * 4, true},
                    {c.gated_out.data(), c.gated_out.size(), true}},
         .order_records = c.order_records},
        [&](emulated_ptx ptx) {
          Body{ptx, args}.run();
        });
    sum.bank_conflicts += one.bank_conflicts;
    sum.shared_accesses += one.shared_accesses;
  }
  return sum;
}

template <class Weights>
block_report run(const cuda::gemm_args& args, const activations& x, call& c) {
  using cuda::gemm, cuda::prefill_gemm;
  constexpr int row_warps = Weights::prefill_row_warps;
  if (c.prefill == prefill_size::large)
    return run_body<prefill_gemm<Weights, Weights::prefill_tiles, row_warps>>(args, x, c);
  if (c.prefill == prefill_size::small)
    return run_body<prefill_gemm<Weights, cuda::prefill_small_tiles, row_warps>>(args, x, c);
  if (args.m <= 8) return run_body<gemm<Weights, 1, 1>>(args, x, c);
  if (args.m <= 16) return run_body<gemm<Weights, 2, 1>>(args, x, c);
  if constexpr (!Weights::crowded)
    if (c.pairs == 1) return run_body<gemm<Weights, 4, 1>>(args, x, c);
  return run_body<gemm<Weights, 4, 2>>(args, x, c);
}

/// Runs the kernel for the packed format of the matrix, with bf16 or f16 activations.
template <bool Bf16>
block_report run_as_packed(const cuda::gemm_args& args, const activations& x, call& c) {
  using ptx = emulated_ptx;
  if (args.w.kind == weight_kind::f16) return run<cuda::gemm_f16_weights<ptx>>(args, x, c);
  if (args.w.kind == weight_kind::bf16) return run<cuda::gemm_bf16_weights<ptx>>(args, x, c);
  block_report report;
  const auto run_with = [&]<class Weights>() { report = run<Weights>(args, x, c); };
  REQUIRE((cuda::gemm_w4_takes(args.w) || cuda::gemm_w8_takes(args.w)));
  if (args.w.kind == weight_kind::grouped_u8)
    cuda::with_gemm_w8_weights<ptx, Bf16>(args.w, run_with);
  else
    cuda::with_gemm_w4_weights<ptx, Bf16>(args.w, run_with);
  return report;
}

/// 16-bit activations, with gaps between rows if c.extra > 0. No gap follows the last row.
inline activations halves_of(const detail::packed_view& w, const call& c, cuda::gemm_args& args) {
  const std::int64_t stride = w.cols + c.extra;
  activations x;
  x.halves.assign(static_cast<std::size_t>((c.m - 1) * stride + w.cols), 0x7e00);
  for (std::int64_t r = 0; r < c.m; ++r)
    for (std::int64_t k = 0; k < w.cols; ++k) {
      const float value = c.x[static_cast<std::size_t>(r * w.cols + k)];
      x.halves[static_cast<std::size_t>(r * stride + k)] =
          c.bf16 ? detail::f32_to_bf16(value) : detail::f32_to_f16(value);
    }
  args.x = x.halves.data();
  args.x_stride = stride;
  return x;
}

/// Rounds `x` (m rows, `stride` apart) to 8 bits as to_8_bits() does, with the columns in `order`.
inline activations codes_of(const detail::packed_view& w, const std::vector<float>& x,
                            std::int64_t stride, std::int64_t m, bool residual,
                            const std::vector<std::int32_t>* order, cuda::gemm_args& args) {
  const std::int64_t rows = cuda::int8_room(w, m).param_rows;
  activations first, second;
  for (activations* one : {&first, &second}) {
    one->codes.assign(static_cast<std::size_t>(m * w.cols), 99);
    one->params.assign(static_cast<std::size_t>(w.cols / cuda::gemm_i8_columns(w) * rows * 2), NAN);
  }
  cuda::to_8_bits_args round{};
  round.x = x.data();
  round.x_stride = stride;
  round.order = order == nullptr ? nullptr : order->data();
  round.first = {first.codes.data(), first.params.data()};
  if (residual) round.residual = {second.codes.data(), second.params.data()};
  round.param_rows = rows;
  round.m = static_cast<int>(m);
  round.cols = static_cast<int>(w.cols);
  round.columns = cuda::gemm_i8_columns(w);
  twill::test::run_grid(
      {.blocks = static_cast<int>(cuda::to_8_bits_blocks(round)),
       .block = {.threads = cuda::to_8_bits_threads,
                 .global = {{x.data(), x.size() * 4, false},
                            {round.order, order == nullptr ? 0 : order->size() * 4, false},
                            {first.codes.data(), first.codes.size(), true},
                            {first.params.data(), first.params.size() * 4, true},
                            {second.codes.data(), second.codes.size(), true},
                            {second.params.data(), second.params.size() * 4, true}}}},
      [&](emulated_ptx ptx) {
        cuda::to_8_bits<emulated_ptx>{ptx, round}.run();
      });
  activations& given = residual ? second : first;
  args.x = given.codes.data();
  args.x_stride = w.cols;
  args.x_params = {given.params.data(), rows};
  return std::move(given);
}

/// Runs the kernel over all outputs. An access outside the arrays is a fault.
inline block_report emulate(const detail::packed_view& w, call& c) {
  cuda::gemm_args args{};
  args.w = w;
  const activations x =
      c.int8 ? codes_of(w, c.x, w.cols, c.m, c.residual, nullptr, args) : halves_of(w, c, args);
  args.m = static_cast<int>(c.m);
  args.bias = c.bias.empty() ? nullptr : c.bias.data();
  args.out = c.out.data();
  args.out_stride = w.rows;
  args.accumulate = c.accumulate;
  if (c.gated) {
    const std::int64_t gated_stride = w.rows / 2 + c.gated_extra;
    c.gated_out.assign(static_cast<std::size_t>(c.m * gated_stride) * size_of(*c.gated), 0xff);
    args.gated = {c.gated_out.data(), *c.gated, gated_stride};
  }
  if (!c.int8) return c.bf16 ? run_as_packed<true>(args, x, c) : run_as_packed<false>(args, x, c);
  block_report report;
  REQUIRE(cuda::gemm_i8_takes(w));
  const auto multiply = [&](const activations& of) {
    cuda::with_gemm_i8_weights<emulated_ptx>(
        w, [&]<class Weights>() { report = run<Weights>(args, of, c); });
  };
  multiply(x);
  if (c.int8x2) {
    args = cuda::of_residual(args);
    multiply(codes_of(w, c.x, w.cols, c.m, true, nullptr, args));
  }
  return report;
}

/// Sets the zero point of group g of a grouped matrix.
inline void set_zero(matrix& w, std::size_t g, int zero) {
  w.group_offsets[g] = -static_cast<float>(zero) * w.scales[g];
  const auto columns = static_cast<std::size_t>(w.group);
  for (std::size_t i = g * columns; i < (g + 1) * columns; ++i)
    w.values[i] = w.scales[g] * static_cast<float>(w.codes[i] - zero);
}

inline void check(const call& c, const oracle& want) {
  int wrong = 0; // counts NaN too, which outputs are before the call
  for (std::size_t i = 0; i < want.value.size(); ++i)
    wrong += !(std::abs(c.out[i] - want.value[i]) <= want.bound[i]);
  CHECK(wrong == 0);
}

/// Compares products with m rows, by blocks of one and of two pairs of panels, with exact ones.
inline void check_product(const matrix& w, const detail::packed_view& packed, std::int64_t m,
                          bool bf16) {
  for (const int pairs : {1, 2}) {
    if (m <= 16 && pairs == 2) continue;
    call c = random_call(packed, m, bf16);
    c.pairs = pairs;
    const block_report report = emulate(packed, c);
    check(c, exact(w, c.x, m, compute_type::f32));
    CHECK(report.bank_conflicts == 0);
  }
}

/// Rows of activations that lie apart, a bias, and outputs that are added to.
inline void check_strided(const matrix& w, const detail::packed_view& packed, std::int64_t m,
                          bool bf16, prefill_size prefill = prefill_size::none) {
  call c = random_call(packed, m, bf16);
  c.prefill = prefill;
  c.extra = 24;
  c.bias = random_floats(packed.rows, 7);
  c.accumulate = true;
  c.out = random_floats(m * packed.rows, 8);
  oracle want = exact(w, c.x, m, compute_type::f32);
  for (std::size_t i = 0; i < want.value.size(); ++i) {
    want.value[i] += double{c.bias[i % c.bias.size()]} + double{c.out[i]};
    want.bound[i] += 1e-5;
  }
  emulate(packed, c);
  check(c, want);
}

/// Activations in bf16 that f16 has no room for.
inline void check_large(const matrix& w, const detail::packed_view& packed) {
  call c = random_call(packed, 2, true);
  for (std::size_t i = 0; i < c.x.size(); i += 50)
    c.x[i] = rounded(i % 100 == 0 ? 1e5F : -3e5F, true);
  emulate(packed, c);
  check(c, exact(w, c.x, 2, compute_type::f32));
}

/// Checks that a row has the same bits alone and among any other rows, up to `most` rows.
inline void check_order(const detail::packed_view& packed, std::int64_t most, bool bf16) {
  const auto bytes = static_cast<std::size_t>(packed.rows) * sizeof(float);
  call all = random_call(packed, most, bf16);
  all.order_records = true;
  emulate(packed, all);
  for (const std::int64_t m :
       {std::int64_t{1}, std::int64_t{5}, std::int64_t{16}, std::int64_t{32}, most}) {
    CAPTURE(m);
    call some = all;
    some.m = m;
    some.pairs = 1;
    some.x.resize(static_cast<std::size_t>(m * packed.cols));
    some.out.assign(static_cast<std::size_t>(m * packed.rows), NAN);
    emulate(packed, some);
    CHECK(std::memcmp(some.out.data(), all.out.data(), some.out.size() * sizeof(float)) == 0);
  }
  CHECK(std::none_of(all.out.begin(), all.out.end(), [](float x) { return std::isnan(x); }));
  // The first two rows differ, so the comparisons above could have failed.
  CHECK(std::memcmp(all.out.data(), all.out.data() + packed.rows, bytes) != 0);
}

} // namespace twill::gpu::test
