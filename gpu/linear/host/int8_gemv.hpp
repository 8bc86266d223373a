// The GEMV of int8 compute: the micro-kernel for few rows, over a SIMD policy. Codes are unpacked
// (and those of grouped_u4_as_u8 widened to 8 bits) as they are loaded. The function that unpacks
// them, load_segment(), is also used by int8_pack.hpp.
#pragma once

#include "gpu/linear/host/tile_common.hpp"

namespace twill::gpu::host {
namespace {

/// Loads the codes of one segment (packed_view.hpp) of a row panel and returns the address after
/// them. `line` holds the factors and bases of the segment's code group (columns that share a
/// factor and a base); only u4_as_u8 reads it.
template <class S, code_form F, int Quads>
inline const unsigned char* load_segment(const unsigned char* at, const unsigned char* line,
                                         typename S::codes (&codes)[Quads]) {
  constexpr int lines = F == code_form::u8 ? Quads : Quads / 2;
  for (int i = 0; i < lines; ++i)
    ask_for(at + i * 64 + codes_ahead);
  if constexpr (F == code_form::u8) {
    for (int i = 0; i < Quads; ++i)
      codes[i] = S::load_codes(at + i * 64);
  } else if constexpr (F == code_form::u4) {
    for (int i = 0; i < Quads / 2; ++i) {
      const typename S::codes both = S::load_codes(at + i * 64);
      codes[2 * i] = S::low4(both);
      codes[2 * i + 1] = S::high4(both);
    }
  } else {
    const auto widening = S::load_widening(line);
    for (int i = 0; i < Quads / 2; ++i)
      S::widen(S::load_codes(at + i * 64), widening, codes[2 * i], codes[2 * i + 1]);
  }
  return at + lines * 64;
}

/// Iterates over the segments of u4_as_u8 and returns each segment's line of factors and bases.
struct line_walk {
  std::int64_t segments; ///< that share a line
  std::int64_t left = 0;
  const unsigned char* at = nullptr;

  explicit line_walk(const packed_view& w) : segments(w.code_group / 32) {}
  /// Starts a group whose params begin at `scales`, with segment `first` of the group.
  void begin_group(const unsigned char* scales, std::int64_t first = 0) {
    at = scales + (1 + first / segments) * detail::code_line_bytes;
    left = segments - first % segments;
  }
  const unsigned char* next() {
    const unsigned char* line = at;
    if (--left == 0) {
      left = segments;
      at += detail::code_line_bytes;
      ask_for(at + scales_ahead);
    }
    return line;
  }
};

/// Whether at least one of R rows has a residual in this segment.
template <int R>
inline bool any_residual(const std::uint8_t* flags, std::int64_t stride) {
  unsigned any = 0;
  for (int r = 0; r < R; ++r)
    any |= flags[r * stride];
  return any != 0;
}

/// The share of the next tile's codes that a pass prefetches. A tile (kernels.hpp) has row panels
/// (16 outputs each) and rows of activations. A pass multiplies a few of the rows by all the row
/// panels, so a tile may take several passes. Each pass prefetches an equal share, so that memory
/// is read during all of them and not only the first. Only 8-bit codes need this: the first pass
/// over 4-bit codes does not wait for memory.
struct share_ahead {
  std::int64_t panels = 0; ///< distance in row panels to the same place in the next tile
  std::int64_t pass = 0, passes = 1;
};

/// Multiplies R rows, the first of which is `row`, by one row panel (16 outputs) and writes the
/// result to `out`, whose rows are `out_stride` floats apart. Not inlined, because GCC 12 generates
/// slower code when the function is part of the loop over rows and panels.
template <class S, code_form F, int Segment, param_form Params, bool ByGroup, bool Residual, int R>
[[gnu::noinline]] void int8_gemv(const tile& t, const quantised_rows& x, std::int64_t panel,
                                 std::int64_t row, const share_ahead& share, float* out,
                                 std::int64_t out_stride) {
  constexpr int quads = Segment / 4;
  const packed_view& w = *t.weights;
  const unsigned char* at = w.codes + panel * w.codes_stride;
  constexpr bool stored = Params == param_form::stored, int16 = Params == param_form::int16;
  const unsigned char* scales = w.scales + panel * w.scales_stride;
  [[maybe_unused]] const auto* row_scales = reinterpret_cast<const float*>(scales);
  if constexpr (int16) scales += detail::row_scale_bytes;
  const std::int32_t segments = w.group / Segment;
  const std::int64_t params_stride = w.params_stride;
  const std::int8_t* values = x.values + row * x.values_stride;
  const segment_params* params = x.params + row * x.segments;
  const std::uint8_t* residual_flags = Residual ? x.has_residual + row * x.segments : nullptr;
  const unsigned char* ahead =
      at + share.panels * w.codes_stride + w.codes_stride * share.pass / share.passes;
  constexpr int lines = quads; // cache lines of a segment's 8-bit codes
  const std::int64_t lines_ahead = share.passes > 1 ? (lines + share.passes - 1) / share.passes : 0;
  typename S::f32 sum[R];
  alignas(64) float totals[R][detail::lanes]; // ByGroup: sums over groups; `sum` is of one group
  for (int r = 0; r < R; ++r) {
    sum[r] = S::zero();
    if constexpr (ByGroup) S::store(totals[r], S::zero());
  }

  const auto float_offset = [&x](const segment_params* of, int r) {
    return S::set1(detail::bits_to_f32(of[r * x.segments].offset));
  };

  // A group consists of segments (packed_view.hpp). A single loop over the segments of all groups
  // is faster than two nested loops over groups and segments.
  typename S::f32 scale, offset;
  typename S::i32 words;
  std::int32_t left_of_group = 0;
  std::int64_t left = x.segments;
  line_walk lines_of(w);
  do {
    if (left_of_group == 0) {
      left_of_group = segments;
      if constexpr (int16)
        words = S::load_words(scales);
      else
        scale = load_scale<S>(w, scales);
      if constexpr (stored) offset = load_offset<S>(w, scales, scale);
      if constexpr (F == code_form::u4_as_u8) lines_of.begin_group(scales);
      scales += params_stride;
      ask_for(scales + scales_ahead);
    }
    --left_of_group;
    if constexpr (F == code_form::u8)
      for (std::int64_t i = 0; i < lines_ahead; ++i, ahead += 64)
        ask_for_later(ahead);
    typename S::codes codes[quads];
    const unsigned char* line = F == code_form::u4_as_u8 ? lines_of.next() : nullptr;
    at = load_segment<S, F>(at, line, codes);
    // Adds the products of the codes, or of the residual codes.
    const auto add = [&](const std::int8_t* row_codes, const segment_params* of)
        __attribute__((always_inline)) {
      typename S::i32 exact[R];
      for (int r = 0; r < R; ++r)
        exact[r] = S::set1_i32(stored ? 0 : static_cast<std::int32_t>(of[r * x.segments].offset));
      S::template dot<F != code_form::u4, R>(exact, codes, row_codes, x.values_stride);
      for (int r = 0; r < R; ++r) {
        const typename S::f32 row_scale = S::set1(of[r * x.segments].scale);
        if constexpr (ByGroup)
          sum[r] = S::fma(S::to_f32(exact[r]), row_scale, sum[r]);
        else if constexpr (int16)
          sum[r] = S::fma(S::to_f32(S::dot_words(exact[r], words)), row_scale, sum[r]);
        else
          sum[r] = S::fma(S::mul(scale, S::to_f32(exact[r])), row_scale, sum[r]);
        if constexpr (stored && !ByGroup) sum[r] = S::fma(offset, float_offset(of, r), sum[r]);
      }
    };
    add(values, params);
    if constexpr (Residual)
      if (any_residual<R>(residual_flags++, x.segments))
        add(values + x.residual_values, params + x.residual_params);
    if (ByGroup && left_of_group == 0)
      for (int r = 0; r < R; ++r) {
        typename S::f32 total = S::fma(scale, sum[r], S::load(totals[r]));
        if constexpr (stored) total = S::fma(offset, float_offset(params, r), total);
        if constexpr (stored && Residual)
          total = S::fma(offset, float_offset(params + x.residual_params, r), total);
        S::store(totals[r], total);
        sum[r] = S::zero();
      }
    values += Segment;
    ++params;
  } while (--left > 0);
  if constexpr (int16)
    for (int r = 0; r < R; ++r)
      sum[r] = S::mul(sum[r], S::load(row_scales));
  for (int r = 0; r < R; ++r)
    finish<S>(t, panel, out + r * out_stride, ByGroup ? S::load(totals[r]) : sum[r]);
}

} // namespace
} // namespace twill::gpu::host
