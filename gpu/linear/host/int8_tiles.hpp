// int8 micro-kernels over a SIMD policy: grouped weights times activations quantised per 32
// columns, to one digit or two.
#pragma once

#include "gpu/linear/host/int8_gemm.hpp"
#include "gpu/linear/host/int8_gemv.hpp"

namespace twill::gpu::host {
namespace {

/// The gates of R rows times what they multiply.
template <class S, code_form F, int Segment, term_form Terms, bool ByGroup, int Digits, int R>
void gated_rows(const tile& t, const quantised_rows& x, std::int64_t block, std::int64_t row,
                const share_ahead& share) {
  alignas(64) float gates[R][detail::lanes], values[R][detail::lanes];
  constexpr auto rows = int8_rows<S, F, Segment, Terms, ByGroup, Digits, R>;
  rows(t, x, block, row, share, gates[0], detail::lanes);
  rows(t, x, block + t.gate_blocks, row, share, values[0], detail::lanes);
  for (int r = 0; r < R; ++r)
    S::store(out_of(t, block, row + r), S::silu_mul(S::load(gates[r]), S::load(values[r])));
}

template <class S, code_form F, int Segment, term_form Terms, bool ByGroup, int Digits>
void tile_int8_of(const tile& t, const quantised_rows& x) {
  if constexpr (S::int8_panels && Segment >= 16)
    if (t.panel != nullptr) return panel_tiles<S, F, Segment, Terms, ByGroup, Digits>(t, x);
  constexpr int rows = Segment == 8 ? 2 : S::int8_rows;
  row_panels<rows>(t.m, [&](auto r, std::int64_t row) {
    constexpr int R = decltype(r)::value;
    const share_ahead share{t.end_block - t.first_block, row / rows, (t.m + rows - 1) / rows};
    if constexpr (S::int8_panels)
      if (t.gate_blocks > 0) {
        for (std::int64_t b = t.first_block; b < t.end_block; ++b)
          gated_rows<S, F, Segment, Terms, ByGroup, Digits, R>(t, x, b, row, share);
        return;
      }
    for (std::int64_t b = t.first_block; b < t.end_block; ++b)
      int8_rows<S, F, Segment, Terms, ByGroup, Digits, R>(t, x, b, row, share, out_of(t, b, row),
                                                          t.out_stride);
  });
}

template <class S>
void tile_int8(const tile& t, const quantised_rows& x) {
  const packed_view& w = *t.weights;
  const auto with = [&](auto u8, auto segment, auto digits) {
    constexpr code_form form = decltype(u8)::value != 0 ? code_form::u8 : code_form::u4;
    constexpr int columns = decltype(segment)::value;
    constexpr int n = decltype(digits)::value;
    if constexpr (may_go_by_group<S>(columns))
      if (goes_by_group(w)) {
        w.offsets_stored ? tile_int8_of<S, form, columns, term_form::stored, true, n>(t, x)
                         : tile_int8_of<S, form, columns, term_form::factored, true, n>(t, x);
        return;
      }
    w.offsets_stored ? tile_int8_of<S, form, columns, term_form::stored, false, n>(t, x)
                     : tile_int8_of<S, form, columns, term_form::factored, false, n>(t, x);
  };
  const auto pick = [&](auto u8, auto segment) {
    x.low_digits != 0 ? with(u8, segment, count<2>{}) : with(u8, segment, count<1>{});
  };
  if (w.kind == weight_kind::grouped_u4_as_u8)
    return tile_int8_of<S, code_form::u4_as_u8, 32, term_form::factored, S::int8_panels, 1>(t, x);
  if (w.integer_terms)
    return tile_int8_of<S, code_form::u4, 32, term_form::integer, false, 1>(t, x);
  const bool u8 = w.kind == weight_kind::grouped_u8;
  if (w.segment == 32)
    u8 ? pick(count<1>{}, count<32>{}) : pick(count<0>{}, count<32>{});
  else if (w.segment == 16)
    u8 ? pick(count<1>{}, count<16>{}) : pick(count<0>{}, count<16>{});
  else
    u8 ? pick(count<1>{}, count<8>{}) : pick(count<0>{}, count<8>{});
}

} // namespace
} // namespace twill::gpu::host
