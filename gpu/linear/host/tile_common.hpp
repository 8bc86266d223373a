// Helpers of both the int8 and the float micro-kernels: dividing rows into groups, loading scales,
// writing outputs. packed_view.hpp explains row panels, groups, segments and residuals.
//
// Everything in the micro-kernel headers is in an unnamed namespace, and they call no function of
// the standard library: a function compiled for a wide instruction set must never become the copy
// that other files link to.
//
// Every kernel sums in the same order, whatever its R (rows at once) and B (row panels at once):
// with one accumulator per output, over ascending columns. So a row's result does not depend on its
// batch. A SIMD policy S offers vectors of 16 floats (f32), 16 int32 (i32), 64 code bytes (codes)
// and 16 bf16 pairs (pairs).
#pragma once

#include "gpu/linear/host/kernels.hpp"

namespace twill::gpu::host {
namespace {

using detail::packed_view;

/// How many bytes ahead of their use weights and scales are prefetched. When several rows are
/// multiplied by each cache line of weights, a core's own prefetchers fall behind.
constexpr std::int64_t codes_ahead = 2048, scales_ahead = 1024;

/// Prefetches into the first-level cache. Addresses past the end of the weights do no harm.
inline void ask_for(const void* line) {
  __builtin_prefetch(line, 0, 3);
}

/// Prefetches into the second-level cache.
inline void ask_for_later(const void* line) {
  __builtin_prefetch(line, 0, 2);
}

template <int N>
struct count {
  static constexpr int value = N;
};

/// Calls f(count<n>) for Min <= n <= Max.
template <int Max, int Min = 1, class F>
inline void with_count(std::int64_t n, F&& f) {
  if constexpr (Max >= Min) {
    if (n == Max)
      f(count<Max>{});
    else
      with_count<Max - 1, Min>(n, f);
  }
}

/// Divides m rows into groups of at most Max and calls f(count<R>, first row) for each group of R
/// rows.
template <int Max, class F>
inline void for_row_groups(std::int64_t m, F&& f) {
  std::int64_t row = 0;
  for (; row + Max <= m; row += Max)
    f(count<Max>{}, row);
  with_count<Max - 1>(m - row, [&](auto n) { f(n, row); });
}

/// How the codes of a grouped kind lie in memory and how many bits the int8 kernels multiply.
enum class code_form {
  u4,
  u8,
  /// weight_kind::grouped_u4_as_u8: 4 bits in memory, widened to 8. Its segments (columns whose
  /// products are summed before scales apply) always have 32 columns. Its offsets are integer
  /// multiples of the scales. Where policy S supports it, scales are applied once per group of
  /// columns. It is multiplied in int8 compute only, so without the residual of int8x2.
  u4_as_u8,
};

/// How a group's scale and offset are applied to int8's integer sum of a segment.
enum class param_form {
  factored, ///< the offset is part of the integer sum, the scale is a float
  stored,   ///< scale and offset are floats
  int16,    ///< both are applied in 16-bit integers: packed_view::int16_quant_params
};

/// Where scales and offsets are 16-bit integers (int16 quant params, packed_view.hpp): the value at
/// which the integer sum over a segment of columns starts, where `sum` is the sum of the
/// activations' codes. The upper 16 bits of a lane hold offset_fractions * sum, the factor of the
/// offset's fraction. The lower 16 bits hold -middle_code * sum, which subtracts the middle code
/// from every code. When the products of the codes have been added, S::dot_words() multiplies the
/// lower half by the scale and the upper half by the fraction. A negative lower half borrows one
/// from the upper half; this error is smaller than the error of rounding 32 activations to codes.
inline std::uint32_t int16_start(std::int32_t sum) {
  const auto n = static_cast<std::uint32_t>(sum);
  return (n << (16 + detail::offset_fraction_bits)) - n * detail::middle_code;
}

/// 16 scales or 16 offsets, one for each row of a panel.
template <class S>
inline typename S::f32 load_scale(const packed_view& w, const unsigned char* at) {
  return w.scales_f16 ? S::load_f16(reinterpret_cast<const std::uint16_t*>(at))
                      : S::load(reinterpret_cast<const float*>(at));
}

/// The 16 offsets of a group with stored offsets. `at` are the group's params, `scale` its scales.
template <class S>
inline typename S::f32 load_offset(const packed_view& w, const unsigned char* at,
                                   typename S::f32 scale) {
  const unsigned char* behind = at + detail::lanes * (w.scales_f16 ? 2 : 4);
  if (!w.zero_points) return load_scale<S>(w, behind);
  return S::mul(S::mul(S::load_u8(behind), S::set1(-1.0F)), scale);
}

/// Whether int8 kernels over the SIMD policy S may apply a group's scale and offset once per group.
/// Where a group has several segments (columns whose products are summed in integers), their sums
/// are first multiplied by the activations' scales and added up, which saves a multiplication per
/// segment. segment_params::offset of a group's last segment then covers the whole group.
template <class S>
constexpr bool may_go_by_group(int segment) {
  return S::int8_gemm && segment == 32;
}
/// Whether the scales of this matrix can be applied once per group. A group must then fit into the
/// int8_gemm_columns columns that int8_pack.hpp unpacks at once.
inline bool goes_by_group(const packed_view& w) {
  return w.segment == 32 && w.group > w.segment && w.group <= int8_gemm_columns;
}

/// The tile's 16 outputs of one row and row panel.
inline float* out_of(const tile& t, std::int64_t panel, std::int64_t row) {
  return t.out + row * t.out_stride + panel * detail::lanes;
}

/// Writes one row's 16 sums to `out`, with the bias added, and added to `out` when accumulating.
template <class S>
inline void finish(const tile& t, std::int64_t panel, float* out, typename S::f32 sum) {
  const std::int64_t first = panel * detail::lanes;
  const std::int64_t left = t.weights->rows - first;
  const int n = left < detail::lanes ? static_cast<int>(left) : static_cast<int>(detail::lanes);
  if (t.bias != nullptr) sum = S::add(sum, S::load_n(t.bias + first, n));
  if (t.accumulate) sum = S::add(S::load_n(out, n), sum);
  S::store_n(out, sum, n);
}

} // namespace
} // namespace twill::gpu::host
