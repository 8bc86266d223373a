// What the int8 and the float micro-kernels share: panels of rows, scales, the write-out.
//
// Everything in these templates is in an unnamed namespace and nothing of the standard library is
// called: a function compiled here for a wide instruction set must never be the copy that other
// files link against.
//
// Order of sums, the same for every R (rows at once), B (blocks at once) and path: one accumulator
// per output, columns ascending. That is what makes a row's result independent of its batch.
// A policy S offers 16 floats (f32), 16 int32 (i32), 64 code bytes (codes), 16 bf16 pairs (pairs).
#pragma once

#include "gpu/linear/host/kernels.hpp"

namespace twill::gpu::host {
namespace {

using detail::packed_view;

/// How far ahead of its use a line of weights is asked for. With several rows per line a core's own
/// prefetchers fall behind: this made decoding 1.17x as fast for 8 rows, 1.1x for 32, and changed
/// nothing for one (`twill-bench engine --at-once N`, by turns with the version before).
constexpr std::int64_t codes_ahead = 2048, scales_ahead = 1024;

/// Past the end it asks for what follows, and does no harm.
inline void ask_for(const void* line) {
  __builtin_prefetch(line, 0, 3);
}

/// Into the second-level cache.
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

/// Cuts m rows into panels of at most Max: f(count<R>, first row).
template <int Max, class F>
inline void row_panels(std::int64_t m, F&& f) {
  std::int64_t row = 0;
  for (; row + Max <= m; row += Max)
    f(count<Max>{}, row);
  with_count<Max - 1>(m - row, [&](auto n) { f(n, row); });
}

/// How codes lie and what is multiplied: int8 kernels' view of the grouped kinds.
enum class code_form {
  u4,
  u8,
  u4_as_u8, ///< segments of 32, offsets in the integers, by group where S can, one digit
};

/// How scales and offsets meet int8's sums of a segment.
enum class term_form {
  factored, ///< the offset in the integers, a float for the scale
  stored,   ///< a float for each
  integer,  ///< packed_view's integer_terms
};

/// A segment's sum begins at this where terms are integers: the sum of its activations' codes, in
/// parts of one, in the upper half of a lane, the products that the middle code stands for in the
/// lower one. With the products added the halves are what S::dot_words() multiplies. Where the
/// lower half is below zero it has borrowed one from the upper: a part of a code, where rounding
/// has moved each of 32 codes by up to a half. (Keeping the borrow out takes an instruction more,
/// which made a prompt 1.7 % slower.)
inline std::uint32_t integer_begin(std::int32_t sum) {
  const auto n = static_cast<std::uint32_t>(sum);
  return (n << (16 + detail::offset_part_bits)) - n * detail::middle_code;
}

/// 16 scales or offsets.
template <class S>
inline typename S::f32 load_scale(const packed_view& w, const unsigned char* at) {
  return w.scales_f16 ? S::load_f16(reinterpret_cast<const std::uint16_t*>(at))
                      : S::load(reinterpret_cast<const float*>(at));
}

/// The 16 offsets of a group whose offsets are stored, whose terms are `at` and scales `scale`.
template <class S>
inline typename S::f32 load_offset(const packed_view& w, const unsigned char* at,
                                   typename S::f32 scale) {
  const unsigned char* behind = at + detail::lanes * (w.scales_f16 ? 2 : 4);
  if (!w.zero_points) return load_scale<S>(w, behind);
  return S::mul(S::mul(S::load_u8(behind), S::set1(-1.0F)), scale);
}

/// int8 by group: where a group has several segments, those are summed with their activations'
/// scales first, and the group's scale and offset are applied once: 9.5 multiplications instead of
/// 11 for 32 columns of a group of 128. The offset's term of a group's last segment is the group's.
/// Made for groups that a panel holds.
template <class S>
constexpr bool may_go_by_group(int segment) {
  return S::int8_panels && segment == 32;
}
inline bool goes_by_group(const packed_view& w) {
  return w.segment == 32 && w.group > w.segment && w.group <= int8_panel_columns;
}

/// Where the tile's 16 outputs of one row and block lie.
inline float* out_of(const tile& t, std::int64_t block, std::int64_t row) {
  return t.out + row * t.out_stride + block * detail::lanes;
}

/// Writes one row's 16 sums to `out`: + bias, then + out when accumulating.
template <class S>
inline void finish(const tile& t, std::int64_t block, float* out, typename S::f32 sum) {
  const std::int64_t first = block * detail::lanes;
  const std::int64_t left = t.weights->rows - first;
  const int n = left < detail::lanes ? static_cast<int>(left) : static_cast<int>(detail::lanes);
  if (t.bias != nullptr) sum = S::add(sum, S::load_n(t.bias + first, n));
  if (t.accumulate) sum = S::add(S::load_n(out, n), sum);
  S::store_n(out, sum, n);
}

} // namespace
} // namespace twill::gpu::host
