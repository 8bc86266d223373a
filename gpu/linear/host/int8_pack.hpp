// int8's panels: two blocks of weights unpacked once for many rows, a stretch of columns at a time,
// so that their codes stay in the first-level cache (grouped_u8's codes need no unpacking and stay
// where they are).
#pragma once

#include "gpu/linear/host/int8_gemv.hpp"

namespace twill::gpu::host {
namespace {

/// Rows and blocks in registers: at most 12 integer and 12 float sums of the 32 registers.
constexpr int panel_rows = 6;
constexpr int panel_least_rows = 4; ///< of two groups or more, evenly cut
constexpr int panel_blocks = 2;
static_assert(panel_rows == int8_panel_rows && panel_blocks == int8_panel_blocks);
static_assert(int8_panel_max_rows % panel_rows == 0);

/// 1.5 * 2^23: as a float's bits, adding a small integer to them adds it to the float.
constexpr std::int32_t float_bias_bits = 0x4b400000;
constexpr float float_bias = 12582912.0F;

/// How a segment's integers become floats: see add_segment().
enum class conversion {
  fused,    ///< offsets stored, f16 scales: by the multiplication with the scale
  stored,   ///< offsets stored: by an instruction of its own
  factored, ///< offsets are in the integers
  integer,  ///< scales and offsets are, but for the rows' units
};

template <conversion How>
struct conversion_of {
  static constexpr conversion value = How;
};

/// One block's terms of a segment: floats, or pairs of 16-bit integers.
struct alignas(64) panel_terms {
  union {
    float scale[16];
    unsigned char words[64];
  };
  float minus_bias[16]; ///< -float_bias * scale
  float offset[16];
};

struct alignas(64) int8_panel {
  unsigned char codes[panel_blocks][int8_panel_columns / 4][64]; ///< unpacked
  panel_terms terms[int8_panel_columns / 16][panel_blocks];
  float sums[int8_panel_max_rows][panel_blocks][16];
};
static_assert(sizeof(int8_panel) == int8_panel_bytes);

/// What a group of rows is multiplied with: segments [first, first + count) of two blocks, the
/// second `apart` after the first; `blocks` is 1 where there is no second.
struct panel_stretch {
  std::int64_t first, count;
  bool begins, ends; ///< the sums; between stretches they stay in the panel
  std::int64_t block, apart;
  int blocks;
  const unsigned char* codes[panel_blocks]; ///< ready to multiply
  const float* units[panel_blocks];         ///< of integer terms
};

/// Fills one side of the panel with a stretch of a block, and says where its codes are.
template <class S, code_form F, int Segment>
void fill_panel(const packed_view& w, std::int64_t block, int side, panel_stretch& stretch,
                int8_panel& panel) {
  constexpr int quads = Segment / 4;
  constexpr bool as_they_are = F == code_form::u8;
  const std::int64_t per_group = w.group / Segment;
  const unsigned char* at =
      w.codes + block * w.codes_stride + stretch.first * (as_they_are ? quads * 64 : quads * 32);
  stretch.codes[side] = as_they_are ? at : panel.codes[side][0];
  const unsigned char* of_block = w.scales + block * w.scales_stride;
  stretch.units[side] = reinterpret_cast<const float*>(of_block);
  const unsigned char* terms = of_block + (w.integer_terms ? detail::unit_bytes : 0) +
                               stretch.first / per_group * w.terms_stride;
  std::int64_t left_of_group = per_group - stretch.first % per_group;
  line_walk lines(w);
  if constexpr (F == code_form::u4_as_u8) lines.begin_group(terms, stretch.first % per_group);
  for (std::int64_t s = 0; s < stretch.count; ++s) {
    if constexpr (!as_they_are) {
      typename S::codes codes[quads];
      const unsigned char* line = F == code_form::u4_as_u8 ? lines.next() : nullptr;
      at = load_segment<S, F>(at, line, codes);
      for (int q = 0; q < quads; ++q)
        S::store_codes(panel.codes[side][s * quads + q], codes[q]);
    }
    panel_terms& out = panel.terms[s][side];
    if (w.integer_terms) {
      S::store_codes(out.words, S::load_codes(terms));
      terms += w.terms_stride;
      ask_for(terms + scales_ahead);
      continue;
    }
    const typename S::f32 scale = load_scale<S>(w, terms);
    S::store(out.scale, scale);
    S::store(out.minus_bias, S::mul(scale, S::set1(-float_bias)));
    if (w.offsets_stored) S::store(out.offset, load_offset<S>(w, terms, scale));
    if (--left_of_group > 0) continue;
    left_of_group = per_group;
    terms += w.terms_stride;
    ask_for(terms + scales_ahead);
    if constexpr (F == code_form::u4_as_u8) lines.begin_group(terms);
  }
}

} // namespace
} // namespace twill::gpu::host
