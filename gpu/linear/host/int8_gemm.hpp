// int8 micro-kernel for many rows, over a SIMD policy with a byte dot product: panels
// (int8_panel.hpp) over the columns and blocks of a tile, and all its rows over each
// (int8_panel_rows.hpp).
#pragma once

#include "gpu/linear/host/int8_microkernel.hpp"

namespace twill::gpu::host {
namespace {

/// Of the tile's own blocks, those that one panel takes.
inline std::int64_t panel_step(const tile& t) {
  return t.gate_blocks > 0 ? 1 : panel_blocks;
}

/// All rows of the tile times two blocks, or the tile's last one. Rows go in groups of at most
/// panel_rows, as even as can be. While they pass, the next stretch is asked for: filling a panel
/// would wait for memory.
template <class S, code_form F, int Segment, conversion How, bool ByGroup, int Digits>
void panel_pair(const tile& t, const quantised_rows& x, std::int64_t block) {
  constexpr std::int64_t most = int8_panel_columns / Segment;
  constexpr std::int64_t segment_bytes = F == code_form::u8 ? Segment * 16 : Segment * 8;
  const packed_view& w = *t.weights;
  const bool gated = t.gate_blocks > 0;
  const std::int64_t apart = gated ? t.gate_blocks : 1;
  const int blocks = gated || block + 1 < t.end_block ? panel_blocks : 1;
  auto& panel = *static_cast<int8_panel*>(t.panel);
  const std::int64_t unit = ByGroup ? w.group / Segment : 1; // segments that stay together
  const std::int64_t units = x.segments / unit;
  const std::int64_t stretches = (units + most / unit - 1) / (most / unit);
  const std::int64_t groups = (t.m + panel_rows - 1) / panel_rows;
  const std::int64_t least = t.m / groups, larger = t.m % groups;
  for (std::int64_t i = 0; i < stretches; ++i) {
    panel_stretch at{
        units * i / stretches * unit, 0, i == 0, i + 1 == stretches, block, apart, blocks, {}, {}};
    at.count = units * (i + 1) / stretches * unit - at.first;
    for (int b = 0; b < panel_blocks; ++b)
      fill_panel<S, F, Segment>(w, block + (b < blocks ? b * apart : 0), b, at, panel);
    const std::int64_t next_first = at.ends ? 0 : at.first + at.count;
    const std::int64_t next_block = at.ends ? block + panel_step(t) : block;
    const unsigned char* next = w.codes + next_block * w.codes_stride + next_first * segment_bytes;
    const unsigned char* next_terms =
        w.scales + next_block * w.scales_stride + next_first * Segment / w.group * w.terms_stride;
    // A group asks for one piece: of either block's codes, then of their terms.
    constexpr std::int64_t pieces = segment_bytes / (Segment * 8);
    const auto ahead = [&](std::int64_t g) {
      if (g < pieces * panel_blocks)
        return next + g / pieces * apart * w.codes_stride + g % pieces * at.count * Segment * 8;
      g -= pieces * panel_blocks;
      return g < panel_blocks ? next_terms + g * apart * w.scales_stride : panel.codes[0][0];
    };
    std::int64_t row = 0;
    for (std::int64_t g = 0; g < groups; ++g)
      with_count<panel_rows, panel_least_rows>(least + (g < larger ? 1 : 0), [&](auto n) {
        constexpr int R = decltype(n)::value;
        panel_group<S, Segment, How, ByGroup, Digits, R>(t, x, row, at, ahead(g), panel);
        row += R;
      });
  }
}

/// The whole tile, of 8 rows or more.
template <class S, code_form F, int Segment, term_form Terms, bool ByGroup, int Digits>
void panel_tiles(const tile& t, const quantised_rows& x) {
  const auto with = [&](auto how) {
    for (std::int64_t b = t.first_block; b < t.end_block; b += panel_step(t))
      panel_pair<S, F, Segment, decltype(how)::value, ByGroup, Digits>(t, x, b);
  };
  if constexpr (Terms == term_form::factored)
    with(conversion_of<conversion::factored>{});
  else if constexpr (Terms == term_form::integer)
    with(conversion_of<conversion::integer>{});
  else if constexpr (Segment == 32 && !ByGroup)
    t.weights->scales_f16 ? with(conversion_of<conversion::fused>{})
                          : with(conversion_of<conversion::stored>{});
  else
    with(conversion_of<conversion::stored>{});
}

} // namespace
} // namespace twill::gpu::host
