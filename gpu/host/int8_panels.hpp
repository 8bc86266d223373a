// int8 micro-kernel for many rows, over a SIMD policy with a byte dot product.
//
// Two blocks of weights are unpacked once, a stretch of columns at a time, into a panel that stays
// in the first-level cache (grouped_u8's codes need no unpacking and stay where they are); then
// groups of rows pass over it. Codes come ready to multiply and every four activations are loaded
// once for both blocks, so that nearly all vector instructions are products. The per-output order
// of sums is that of int8_rows.hpp, bit for bit.
#pragma once

#include "gpu/host/int8_rows.hpp"

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

/// How a segment's integers become floats: see panel_group().
enum class conversion {
  fused,    ///< offsets stored, f16 scales, one digit: by the multiplication with the scale
  stored,   ///< offsets stored: by an instruction of its own
  factored, ///< offsets are in the integers
};

template <conversion How>
struct conversion_of {
  static constexpr conversion value = How;
};

/// One block's terms of a segment, in floats.
struct alignas(64) panel_terms {
  float scale[16];
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
  const unsigned char* terms =
      w.scales + block * w.scales_stride + stretch.first / per_group * w.terms_stride;
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

/// Adds the group's scale and offset times its sums to the rows' `totals`, and clears `sum`.
template <class S, conversion How, int R>
[[gnu::always_inline]] inline void
close_group(const panel_terms (&terms)[panel_blocks], const segment_terms* row_terms,
            std::int64_t terms_stride, float (*totals)[panel_blocks][16],
            typename S::f32 (&sum)[R][panel_blocks]) {
  for (int b = 0; b < panel_blocks; ++b) {
    const typename S::f32 scale = S::load(terms[b].scale);
    typename S::f32 offset;
    if constexpr (How != conversion::factored) offset = S::load(terms[b].offset);
    for (int r = 0; r < R; ++r) {
      typename S::f32 total = S::fma(scale, sum[r][b], S::load(totals[r][b]));
      if constexpr (How != conversion::factored)
        total =
            S::fma(offset, S::set1(detail::bits_to_f32(row_terms[r * terms_stride].term)), total);
      S::store(totals[r][b], total);
      sum[r][b] = S::zero();
    }
  }
}

/// R rows from `row` on times a stretch. Asks for Segment * 8 bytes from `ahead` on in each
/// segment: in a burst they would hold up the loads. ByGroup: as goes_by_group() says; a stretch
/// has whole groups then, and the sums over groups stay in the panel.
///
/// The fused conversion: sums start at the bits of float_bias, so that a sum's bits are those of
/// float_bias + sum; scale * that - scale * float_bias, in one rounding, is scale * sum rounded
/// once (both terms are exact for scales of 11 bits and sums below 2^22), which is what converting
/// and multiplying gives.
template <class S, int Segment, conversion How, bool ByGroup, int Digits, int R>
[[gnu::noinline]] void panel_group(const tile& t, const quantised_rows& x, std::int64_t row,
                                   const panel_stretch& at, const unsigned char* ahead,
                                   int8_panel& panel) {
  constexpr int quads = Segment / 4;
  constexpr int B = panel_blocks;
  const std::int64_t stride = x.values_stride, terms_stride = x.segments, low = x.low_digits;
  const std::int8_t* values = x.values + row * stride + at.first * Segment;
  const segment_terms* row_terms = x.terms + row * terms_stride + at.first;
  const std::uint8_t* fine = Digits == 2 ? x.fine + row * terms_stride + at.first : nullptr;
  const unsigned char* codes[B];
  for (int b = 0; b < B; ++b)
    codes[b] = at.codes[b];
  const auto* terms = panel.terms;
  typename S::f32 sum[R][B];
  for (int r = 0; r < R; ++r)
    for (int b = 0; b < B; ++b) {
      sum[r][b] = at.begins || ByGroup ? S::zero() : S::load(panel.sums[row + r][b]);
      if (ByGroup && at.begins) S::store(panel.sums[row + r][b], S::zero());
    }
  const std::int64_t per_group = t.weights->group / Segment;
  std::int64_t left_of_group = per_group;

  for (std::int64_t left = at.count; left > 0; --left) {
    typename S::i32 exact[R][B];
    const auto start = [&](int r) {
      if constexpr (How == conversion::factored && Digits == 1)
        return S::set1_i32(static_cast<std::int32_t>(row_terms[r * terms_stride].term));
      else
        return S::set1_i32(How == conversion::fused ? float_bias_bits : 0);
    };
    for (int r = 0; r < R; ++r)
      for (int b = 0; b < B; ++b)
        exact[r][b] = start(r);
    for (int i = 0; i < Segment / 8; ++i, ahead += 64)
      ask_for_later(ahead);
    const auto multiply = [&](const std::int8_t* from) {
      for (int q = 0; q < quads; ++q) {
        typename S::codes c[B];
        for (int b = 0; b < B; ++b)
          c[b] = S::load_codes(codes[b] + q * 64);
        for (int r = 0; r < R; ++r) {
          const typename S::i32 four = S::quad(from + r * stride + 4 * q);
          for (int b = 0; b < B; ++b)
            exact[r][b] = S::dot_quad(exact[r][b], c[b], four);
        }
      }
    };
    multiply(values);
    if constexpr (Digits == 2) {
      for (int r = 0; r < R; ++r)
        for (int b = 0; b < B; ++b)
          exact[r][b] = S::template shift_left<detail::high_digit_bits>(exact[r][b]);
      if (any_fine<R>(fine, terms_stride)) multiply(values + low);
      ++fine;
      if constexpr (How == conversion::factored)
        for (int r = 0; r < R; ++r)
          for (int b = 0; b < B; ++b)
            exact[r][b] =
                S::add(exact[r][b],
                       S::set1_i32(static_cast<std::int32_t>(row_terms[r * terms_stride].term)));
    }
    if constexpr (ByGroup) {
      for (int r = 0; r < R; ++r) {
        const typename S::f32 scale = S::set1(row_terms[r * terms_stride].scale);
        for (int b = 0; b < B; ++b)
          sum[r][b] = S::fma(S::to_f32(exact[r][b]), scale, sum[r][b]);
      }
      if (--left_of_group == 0) {
        left_of_group = per_group;
        close_group<S, How>(*terms, row_terms, terms_stride, &panel.sums[row], sum);
      }
    } else {
      for (int b = 0; b < B; ++b) {
        const panel_terms& of = (*terms)[b];
        const typename S::f32 scale = S::load(of.scale), minus_bias = S::load(of.minus_bias);
        typename S::f32 offset;
        if constexpr (How != conversion::factored) offset = S::load(of.offset);
        for (int r = 0; r < R; ++r) {
          typename S::f32 scaled;
          if constexpr (How == conversion::fused)
            scaled = S::fma(scale, S::as_f32(exact[r][b]), minus_bias);
          else
            scaled = S::mul(scale, S::to_f32(exact[r][b]));
          sum[r][b] = S::fma(scaled, S::set1(row_terms[r * terms_stride].scale), sum[r][b]);
          if constexpr (How != conversion::factored)
            sum[r][b] = S::fma(
                offset, S::set1(detail::bits_to_f32(row_terms[r * terms_stride].term)), sum[r][b]);
        }
      }
    }
    for (int b = 0; b < B; ++b)
      codes[b] += quads * 64;
    ++terms;
    values += Segment;
    ++row_terms;
  }
  if constexpr (ByGroup) {
    if (!at.ends) return;
    for (int r = 0; r < R; ++r)
      for (int b = 0; b < B; ++b)
        sum[r][b] = S::load(panel.sums[row + r][b]);
  }

  if (at.ends && t.gate_blocks > 0) {
    float* out = out_of(t, at.block, row);
    for (int r = 0; r < R; ++r, out += t.out_stride)
      S::store(out, S::silu_mul(sum[r][0], sum[r][1]));
    return;
  }
  // The plain case in registers: finish(), sum by sum, took a tenth of 512 x 576 -> 3072.
  const bool whole = (at.block + B) * detail::lanes <= t.weights->rows && t.bias == nullptr;
  if (at.ends && whole) {
    float* out = out_of(t, at.block, row);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r, out += t.out_stride)
#pragma GCC unroll 2
      for (int b = 0; b < B; ++b) {
        float* to = out + b * detail::lanes;
        S::store(to, t.accumulate ? S::add(S::load(to), sum[r][b]) : sum[r][b]);
      }
    return;
  }
  for (int r = 0; r < R; ++r)
    for (int b = 0; b < B; ++b)
      S::store(panel.sums[row + r][b], sum[r][b]);
  if (!at.ends) return;
  for (int r = 0; r < R; ++r)
    for (int b = 0; b < at.blocks; ++b)
      finish<S>(t, at.block + b, out_of(t, at.block + b, row + r), S::load(panel.sums[row + r][b]));
}

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
        units * i / stretches * unit, 0, i == 0, i + 1 == stretches, block, apart, blocks, {}};
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
template <class S, code_form F, int Segment, bool Stored, bool ByGroup, int Digits>
void panel_tiles(const tile& t, const quantised_rows& x) {
  const auto with = [&](auto how) {
    for (std::int64_t b = t.first_block; b < t.end_block; b += panel_step(t))
      panel_pair<S, F, Segment, decltype(how)::value, ByGroup, Digits>(t, x, b);
  };
  if constexpr (!Stored)
    with(conversion_of<conversion::factored>{});
  else if constexpr (Segment == 32 && Digits == 1 && !ByGroup)
    t.weights->scales_f16 ? with(conversion_of<conversion::fused>{})
                          : with(conversion_of<conversion::stored>{});
  else
    with(conversion_of<conversion::stored>{});
}

} // namespace
} // namespace twill::gpu::host
