// Computes tiles (some outputs for some rows, kernels.hpp) in int8 compute, as templates over a
// SIMD policy (simd_*.hpp): grouped weights times activations that are quantised per 32 columns,
// with or without a residual (the rounding error, which compute_type::int8x2 also multiplies). A
// tile uses either the GEMV or the GEMM kernel.
#pragma once

#include "gpu/linear/host/int8_gemm.hpp"
#include "gpu/linear/host/int8_gemv.hpp"

namespace twill::gpu::host {
namespace {

/// Writes silu_mul() of a gate panel and the panel that it multiplies, for R rows.
template <class S, code_form F, int Segment, param_form Params, bool ByGroup, bool Residual, int R>
void gated_rows(const tile& t, const quantised_rows& x, std::int64_t panel, std::int64_t row,
                const share_ahead& share) {
  alignas(64) float gates[R][detail::lanes], values[R][detail::lanes];
  constexpr auto rows = int8_gemv<S, F, Segment, Params, ByGroup, Residual, R>;
  rows(t, x, panel, row, share, gates[0], detail::lanes);
  rows(t, x, panel + t.gate_panels, row, share, values[0], detail::lanes);
  for (int r = 0; r < R; ++r)
    S::store(out_of(t, panel, row + r), S::silu_mul(S::load(gates[r]), S::load(values[r])));
}

template <class S, code_form F, int Segment, param_form Params, bool ByGroup, bool Residual>
void tile_int8_of(const tile& t, const quantised_rows& x) {
  if constexpr (S::int8_gemm && Segment >= 16)
    if (t.pack != nullptr) return int8_gemm<S, F, Segment, Params, ByGroup, Residual>(t, x);
  constexpr int rows = Segment == 8 ? 2 : S::gemv_rows;
  for_row_groups<rows>(t.m, [&](auto r, std::int64_t row) {
    constexpr int R = decltype(r)::value;
    const share_ahead share{t.end_panel - t.first_panel, row / rows, (t.m + rows - 1) / rows};
    if constexpr (S::int8_gemm)
      if (t.gate_panels > 0) {
        for (std::int64_t b = t.first_panel; b < t.end_panel; ++b)
          gated_rows<S, F, Segment, Params, ByGroup, Residual, R>(t, x, b, row, share);
        return;
      }
    for (std::int64_t b = t.first_panel; b < t.end_panel; ++b)
      int8_gemv<S, F, Segment, Params, ByGroup, Residual, R>(t, x, b, row, share, out_of(t, b, row),
                                                             t.out_stride);
  });
}

template <class S>
void tile_int8(const tile& t, const quantised_rows& x) {
  const packed_view& w = *t.weights;
  const auto with = [&](auto u8, auto segment, auto residual) {
    constexpr code_form form = decltype(u8)::value != 0 ? code_form::u8 : code_form::u4;
    constexpr int columns = decltype(segment)::value;
    constexpr bool has_residual = decltype(residual)::value != 0;
    if constexpr (may_go_by_group<S>(columns))
      if (goes_by_group(w)) {
        w.offsets_stored
            ? tile_int8_of<S, form, columns, param_form::stored, true, has_residual>(t, x)
            : tile_int8_of<S, form, columns, param_form::factored, true, has_residual>(t, x);
        return;
      }
    w.offsets_stored
        ? tile_int8_of<S, form, columns, param_form::stored, false, has_residual>(t, x)
        : tile_int8_of<S, form, columns, param_form::factored, false, has_residual>(t, x);
  };
  const auto pick = [&](auto u8, auto segment) {
    x.residual_values != 0 ? with(u8, segment, count<1>{}) : with(u8, segment, count<0>{});
  };
  if (w.kind == weight_kind::grouped_u4_as_u8)
    return tile_int8_of<S, code_form::u4_as_u8, 32, param_form::factored, S::int8_gemm, false>(t,
                                                                                               x);
  if (w.int16_quant_params)
    return tile_int8_of<S, code_form::u4, 32, param_form::int16, false, false>(t, x);
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
