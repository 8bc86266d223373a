// int8 micro-kernel for few rows, over a SIMD policy: codes are unpacked, and widened, on their way
// from memory. int8_panel.hpp unpacks with the same load_segment().
#pragma once

#include "gpu/linear/host/tile_common.hpp"

namespace twill::gpu::host {
namespace {

/// `line`: of u4_as_u8, the segment's.
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

/// The line of each segment of u4_as_u8, one after the other.
struct line_walk {
  std::int64_t segments; ///< of a line
  std::int64_t left = 0;
  const unsigned char* at = nullptr;

  explicit line_walk(const packed_view& w) : segments(w.code_group / 32) {}
  /// A group's scales; `first`: its first segment that is walked.
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

/// Whether the low digits of this segment count in any of R rows.
template <int R>
inline bool any_fine(const std::uint8_t* fine, std::int64_t stride) {
  unsigned any = 0;
  for (int r = 0; r < R; ++r)
    any |= fine[r * stride];
  return any != 0;
}

/// What one of several passes over a tile asks for meanwhile: its share of the next tile's codes,
/// so that memory is read all the time and not in the first pass alone. Weights of 8 bits in memory
/// are 9 % faster for 32 rows and 20 % for 16 by it, 2 % slower in a near cache; those of 4 bits,
/// whose first pass need not wait, gain nothing and do without (one core, by turns).
struct share_ahead {
  std::int64_t blocks = 0; ///< from a block to the one that lies there in the next tile
  std::int64_t pass = 0, passes = 1;
};

/// R rows from `row` on times a block, to `out`, `out_stride` after each other. A function of its
/// own: inlined into the loop over rows and blocks it is a fifth slower (GCC 12).
template <class S, code_form F, int Segment, term_form Terms, bool ByGroup, int Digits, int R>
[[gnu::noinline]] void int8_rows(const tile& t, const quantised_rows& x, std::int64_t block,
                                 std::int64_t row, const share_ahead& share, float* out,
                                 std::int64_t out_stride) {
  constexpr int quads = Segment / 4;
  const packed_view& w = *t.weights;
  const unsigned char* at = w.codes + block * w.codes_stride;
  constexpr bool stored = Terms == term_form::stored, integer = Terms == term_form::integer;
  const unsigned char* scales = w.scales + block * w.scales_stride;
  [[maybe_unused]] const auto* units = reinterpret_cast<const float*>(scales);
  if constexpr (integer) scales += detail::unit_bytes;
  const std::int32_t segments = w.group / Segment;
  const std::int64_t terms_stride = w.terms_stride;
  const std::int8_t* values = x.values + row * x.values_stride;
  const segment_terms* terms = x.terms + row * x.segments;
  const std::uint8_t* fine = Digits == 2 ? x.fine + row * x.segments : nullptr;
  const unsigned char* ahead =
      at + share.blocks * w.codes_stride + w.codes_stride * share.pass / share.passes;
  constexpr int lines = quads; // of a segment's codes of 8 bits
  const std::int64_t lines_ahead = share.passes > 1 ? (lines + share.passes - 1) / share.passes : 0;
  typename S::f32 sum[R];
  alignas(64) float totals[R][detail::lanes]; // ByGroup: over groups; sum is the group's
  for (int r = 0; r < R; ++r) {
    sum[r] = S::zero();
    if constexpr (ByGroup) S::store(totals[r], S::zero());
  }

  const auto float_term = [&x](const segment_terms* of, int r) {
    return S::set1(detail::bits_to_f32(of[r * x.segments].term));
  };

  // One loop over segments, not one within another: 2 % faster (`twill-bench kernels`).
  typename S::f32 scale, offset;
  typename S::i32 words;
  std::int32_t left_of_group = 0;
  std::int64_t left = x.segments;
  line_walk lines_of(w);
  do {
    if (left_of_group == 0) {
      left_of_group = segments;
      if constexpr (integer)
        words = S::load_words(scales);
      else
        scale = load_scale<S>(w, scales);
      if constexpr (stored) offset = load_offset<S>(w, scales, scale);
      if constexpr (F == code_form::u4_as_u8) lines_of.begin_group(scales);
      scales += terms_stride;
      ask_for(scales + scales_ahead);
    }
    --left_of_group;
    if constexpr (F == code_form::u8)
      for (std::int64_t i = 0; i < lines_ahead; ++i, ahead += 64)
        ask_for_later(ahead);
    typename S::codes codes[quads];
    const unsigned char* line = F == code_form::u4_as_u8 ? lines_of.next() : nullptr;
    at = load_segment<S, F>(at, line, codes);
    // Adds one digit of the activations.
    const auto add = [&](const std::int8_t* digits, const segment_terms* of)
        __attribute__((always_inline)) {
      typename S::i32 exact[R];
      for (int r = 0; r < R; ++r)
        exact[r] = S::set1_i32(stored ? 0 : static_cast<std::int32_t>(of[r * x.segments].term));
      S::template dot<F != code_form::u4, R>(exact, codes, digits, x.values_stride);
      for (int r = 0; r < R; ++r) {
        const typename S::f32 row_scale = S::set1(of[r * x.segments].scale);
        if constexpr (ByGroup)
          sum[r] = S::fma(S::to_f32(exact[r]), row_scale, sum[r]);
        else if constexpr (integer)
          sum[r] = S::fma(S::to_f32(S::dot_words(exact[r], words)), row_scale, sum[r]);
        else
          sum[r] = S::fma(S::mul(scale, S::to_f32(exact[r])), row_scale, sum[r]);
        if constexpr (stored && !ByGroup) sum[r] = S::fma(offset, float_term(of, r), sum[r]);
      }
    };
    add(values, terms);
    if constexpr (Digits == 2)
      if (any_fine<R>(fine++, x.segments)) add(values + x.low_digits, terms + x.low_terms);
    if (ByGroup && left_of_group == 0)
      for (int r = 0; r < R; ++r) {
        typename S::f32 total = S::fma(scale, sum[r], S::load(totals[r]));
        if constexpr (stored) total = S::fma(offset, float_term(terms, r), total);
        if constexpr (stored && Digits == 2)
          total = S::fma(offset, float_term(terms + x.low_terms, r), total);
        S::store(totals[r], total);
        sum[r] = S::zero();
      }
    values += Segment;
    ++terms;
  } while (--left > 0);
  if constexpr (integer)
    for (int r = 0; r < R; ++r)
      sum[r] = S::mul(sum[r], S::load(units));
  for (int r = 0; r < R; ++r)
    finish<S>(t, block, out + r * out_stride, ByGroup ? S::load(totals[r]) : sum[r]);
}

} // namespace
} // namespace twill::gpu::host
