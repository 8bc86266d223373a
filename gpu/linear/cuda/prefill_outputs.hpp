// prefill_outputs: writes the outputs of a warp of prefill_gemm.hpp, or silu_mul() of them.
#pragma once

#include <cstdint>

#include "gpu/cuda/ptx.hpp"
#include "gpu/detail/activation_element.hpp"
#include "gpu/detail/kernel_math.hpp"
#include "gpu/linear/cuda/gemm.hpp"
#include "gpu/linear/cuda/prefill_gemm_shape.hpp"

namespace twill::gpu::cuda {

/// Four elements that one instruction stores.
template <class T>
struct alignas(4 * sizeof(T)) vector4 {
  T value[4];
};

/// A thread has four outputs of each of its rows. With most kinds of weights the four are
/// neighbours; then one instruction writes all four, if the rows of the output are aligned for it.
template <class Shape>
struct prefill_outputs {
  using weights = typename Shape::weights;
  /// Whether a lane's four outputs of a row are neighbours.
  static constexpr bool neighbours = weights::output_of(0, 1, 1) == 3;

  typename weights::ptx_type ptx;
  const gemm_args& args;
  std::int64_t first_output; ///< of the warp
  int first_row;             ///< of the warp

  TWILL_KERNEL_MEMBER int lane() const { return ptx.thread() % 32; }

  /// Computes the value of an output from its sum.
  TWILL_KERNEL_MEMBER float finished(float total, float bias, float before) const {
    total *= weights::sum_unit;
    if (args.bias != nullptr) total += bias;
    return args.accumulate ? before + total : total;
  }

  /// Writes the warp's outputs. Their final sums are in `totals`, or in shared memory where
  /// Shape::totals_in_registers is false.
  TWILL_KERNEL_MEMBER void write(const prefill_sums<Shape>& totals) const {
    const bool at_once =
        neighbours && first_output + weights::output_of(lane(), 1, 1) < args.w.rows &&
        reinterpret_cast<std::uintptr_t>(args.out) % 16 == 0 && args.out_stride % 4 == 0;
    float bias[4] = {};
    TWILL_UNROLL
    for (int o = 0; o < 4; ++o) {
      const std::int64_t output = first_output + weights::output_of(lane(), o / 2, o % 2);
      if (args.bias != nullptr && output < args.w.rows) bias[o] = ptx.load(args.bias + output);
    }
    TWILL_UNROLL
    for (int n = 0; n < Shape::tiles; ++n) {
      floats4 total[2]; // of the tiles of outputs
      TWILL_UNROLL
      for (int i = 0; i < 2; ++i)
        if constexpr (Shape::totals_in_registers)
          total[i] = {{totals[n][i][0], totals[n][i][1], totals[n][i][2], totals[n][i][3]}};
        else
          total[i] = ptx.template load_shared<floats4>(Shape::total_at(ptx.thread(), n, i));
      TWILL_UNROLL
      for (int e = 0; e < 2; ++e) {
        const int row = first_row + n * gemm_tile + lane() % 4 * 2 + e;
        if (row >= args.m) continue;
        float* const to = args.out + row * args.out_stride + first_output;
        if (at_once) {
          auto* const four = reinterpret_cast<floats4*>(to + weights::output_of(lane(), 0, 0));
          floats4 value{};
          if (args.accumulate) value = ptx.load(four);
          TWILL_UNROLL
          for (int o = 0; o < 4; ++o)
            value.value[o] = finished(total[o / 2].value[o % 2 * 2 + e], bias[o], value.value[o]);
          ptx.store(four, value);
          continue;
        }
        TWILL_UNROLL
        for (int o = 0; o < 4; ++o) {
          const int output = weights::output_of(lane(), o / 2, o % 2);
          if (first_output + output >= args.w.rows) continue;
          const float before = args.accumulate ? ptx.load(to + output) : 0.0f;
          ptx.store(to + output, finished(total[o / 2].value[o % 2 * 2 + e], bias[o], before));
        }
      }
    }
  }

  /// Writes silu_mul() of the block's outputs. All sums must be in shared memory, and
  /// `first_output` counts within a half of the matrix. A thread with outputs of the gate and the
  /// thread with the matching outputs of the other half divide the tiles of rows between them.
  template <class Element>
  TWILL_KERNEL_MEMBER void write_gated() const {
    using stored = typename Element::stored;
    constexpr int half_threads = Shape::pairs / 2 * 32;
    const std::int64_t outputs = args.w.rows / 2;
    const int half = Shape::pair_of(ptx.thread()) / (Shape::pairs / 2);
    const int gate_thread = ptx.thread() - half * half_threads;
    auto* const out = static_cast<stored*>(args.gated.data);
    const bool at_once = neighbours && first_output + weights::output_of(lane(), 1, 1) < outputs &&
                         reinterpret_cast<std::uintptr_t>(out) % (4 * sizeof(stored)) == 0 &&
                         args.gated.stride % 4 == 0;
    for (int n = half * Shape::tiles / 2; n < (half + 1) * Shape::tiles / 2; ++n) {
      floats4 gate[2], up[2]; // of the tiles of outputs
      TWILL_UNROLL
      for (int i = 0; i < 2; ++i) {
        gate[i] = ptx.template load_shared<floats4>(Shape::total_at(gate_thread, n, i));
        up[i] =
            ptx.template load_shared<floats4>(Shape::total_at(gate_thread + half_threads, n, i));
      }
      TWILL_UNROLL
      for (int e = 0; e < 2; ++e) {
        const int row = first_row + n * gemm_tile + lane() % 4 * 2 + e;
        if (row >= args.m) continue;
        vector4<stored> four;
        TWILL_UNROLL
        for (int o = 0; o < 4; ++o) {
          const int j = o % 2 * 2 + e;
          four.value[o] = Element::narrow(detail::silu(gate[o / 2].value[j] * weights::sum_unit) *
                                          (up[o / 2].value[j] * weights::sum_unit));
        }
        stored* const to = out + row * args.gated.stride + first_output;
        if (at_once) {
          ptx.store(reinterpret_cast<vector4<stored>*>(to + weights::output_of(lane(), 0, 0)),
                    four);
          continue;
        }
        TWILL_UNROLL
        for (int o = 0; o < 4; ++o) {
          const int output = weights::output_of(lane(), o / 2, o % 2);
          if (first_output + output < outputs) ptx.store(to + output, four.value[o]);
        }
      }
    }
  }
};

} // namespace twill::gpu::cuda
