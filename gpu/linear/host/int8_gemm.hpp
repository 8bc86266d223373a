// The GEMM of int8 compute, which multiplies tiles of 8 rows or more. It needs a SIMD policy with a
// byte dot product. A stretch, which is up to int8_gemm_columns columns of two row panels (16
// outputs each), is unpacked (int8_pack.hpp), and all rows of the tile are multiplied by it
// (int8_microkernel.hpp); then the next stretch follows.
#pragma once

#include "gpu/linear/host/int8_microkernel.hpp"

namespace twill::gpu::host {
namespace {

/// The step from one call of gemm_pair() to the next, in row panels of the tile (16 outputs each).
/// A call takes up to two panels: neighbours, or in a gated layer one of the gate and the one that
/// it multiplies. The latter is not among the tile's panels, so the step is 1 there.
inline std::int64_t panels_at_once(const tile& t) {
  return t.gate_panels > 0 ? 1 : microkernel_panels;
}

/// Multiplies all rows of the tile by two row panels (16 outputs each), or by one at the end of the
/// tile. Rows are divided into groups of at most microkernel_rows, as evenly as possible. While the
/// groups are multiplied one after the other, the next columns to unpack (a stretch, int8_pack.hpp)
/// are prefetched; otherwise unpacking them would wait for memory.
template <class S, code_form F, int Segment, conversion How, bool ByGroup, bool Residual>
void gemm_pair(const tile& t, const quantised_rows& x, std::int64_t panel) {
  constexpr std::int64_t most = int8_gemm_columns / Segment;
  constexpr std::int64_t segment_bytes = F == code_form::u8 ? Segment * 16 : Segment * 8;
  const packed_view& w = *t.weights;
  const bool gated = t.gate_panels > 0;
  const std::int64_t apart = gated ? t.gate_panels : 1;
  const int panels = gated || panel + 1 < t.end_panel ? microkernel_panels : 1;
  auto& pack = *static_cast<int8_pack*>(t.pack);
  const std::int64_t whole =
      ByGroup ? w.group / Segment : 1; // segments that must stay in one stretch
  const std::int64_t n_whole = x.segments / whole;
  const std::int64_t stretches = (n_whole + most / whole - 1) / (most / whole);
  const std::int64_t groups = (t.m + microkernel_rows - 1) / microkernel_rows;
  const std::int64_t least = t.m / groups, larger = t.m % groups;
  for (std::int64_t i = 0; i < stretches; ++i) {
    pack_stretch at{n_whole * i / stretches * whole,
                    0,
                    i == 0,
                    i + 1 == stretches,
                    panel,
                    apart,
                    panels,
                    {},
                    {}};
    at.count = n_whole * (i + 1) / stretches * whole - at.first;
    for (int b = 0; b < microkernel_panels; ++b)
      pack_panel<S, F, Segment>(w, panel + (b < panels ? b * apart : 0), b, at, pack);
    const std::int64_t next_first = at.ends ? 0 : at.first + at.count;
    const std::int64_t next_panel = at.ends ? panel + panels_at_once(t) : panel;
    const unsigned char* next = w.codes + next_panel * w.codes_stride + next_first * segment_bytes;
    const unsigned char* next_params =
        w.scales + next_panel * w.scales_stride + next_first * Segment / w.group * w.params_stride;
    // Each group of rows prefetches one share of the columns that are unpacked next (the next
    // stretch). The first shares are the codes of both panels, the later ones their quant params.
    constexpr std::int64_t shares = segment_bytes / (Segment * 8);
    const auto ahead = [&](std::int64_t g) {
      if (g < shares * microkernel_panels)
        return next + g / shares * apart * w.codes_stride + g % shares * at.count * Segment * 8;
      g -= shares * microkernel_panels;
      return g < microkernel_panels ? next_params + g * apart * w.scales_stride : pack.codes[0][0];
    };
    std::int64_t row = 0;
    for (std::int64_t g = 0; g < groups; ++g)
      with_count<microkernel_rows, microkernel_least_rows>(
          least + (g < larger ? 1 : 0), [&](auto n) {
            constexpr int R = decltype(n)::value;
            microkernel<S, Segment, How, ByGroup, Residual, R>(t, x, row, at, ahead(g), pack);
            row += R;
          });
  }
}

/// The whole tile.
template <class S, code_form F, int Segment, param_form Params, bool ByGroup, bool Residual>
void int8_gemm(const tile& t, const quantised_rows& x) {
  const auto with = [&](auto how) {
    for (std::int64_t b = t.first_panel; b < t.end_panel; b += panels_at_once(t))
      gemm_pair<S, F, Segment, decltype(how)::value, ByGroup, Residual>(t, x, b);
  };
  if constexpr (Params == param_form::factored)
    with(conversion_of<conversion::factored>{});
  else if constexpr (Params == param_form::int16)
    with(conversion_of<conversion::int16>{});
  else if constexpr (Segment == 32 && !ByGroup)
    t.weights->scales_f16 ? with(conversion_of<conversion::fused>{})
                          : with(conversion_of<conversion::stored>{});
  else
    with(conversion_of<conversion::stored>{});
}

} // namespace
} // namespace twill::gpu::host
