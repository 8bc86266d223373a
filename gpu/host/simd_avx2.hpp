// The SIMD policy of tile_templates.hpp for AVX2, FMA and F16C, where two registers hold 16 lanes.
#pragma once

#include <cstdint>

#include <immintrin.h>

#include "gpu/host/byte_sums.hpp"

namespace twill::gpu::host {
namespace {

struct simd_avx2 : byte_sums {
  struct f32 {
    __m256 lo, hi;
  };
  struct i32 {
    __m256i lo, hi;
  };
  using codes = i32;
  using pairs = i32;
  static constexpr bool int8_gemm = false;
  static constexpr int gemv_rows = 4;
  static constexpr int f32_rows = 5;
  static constexpr int bf16_rows = 5;

  static f32 zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static f32 set1(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static i32 set1_i32(std::int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
  static f32 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static void store(float* p, f32 v) {
    _mm256_storeu_ps(p, v.lo);
    _mm256_storeu_ps(p + 8, v.hi);
  }
  static __m256i first_n(int n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static f32 load_n(const float* p, int n) {
    if (n == 16) return load(p);
    if (n <= 8) return {_mm256_maskload_ps(p, first_n(n)), _mm256_setzero_ps()};
    return {_mm256_loadu_ps(p), _mm256_maskload_ps(p + 8, first_n(n - 8))};
  }
  static void store_n(float* p, f32 v, int n) {
    if (n == 16) return store(p, v);
    if (n <= 8) return _mm256_maskstore_ps(p, first_n(n), v.lo);
    _mm256_storeu_ps(p, v.lo);
    _mm256_maskstore_ps(p + 8, first_n(n - 8), v.hi);
  }
  static f32 load_f16(const std::uint16_t* p) {
    const auto* v = reinterpret_cast<const __m128i*>(p);
    return {_mm256_cvtph_ps(_mm_loadu_si128(v)), _mm256_cvtph_ps(_mm_loadu_si128(v + 1))};
  }
  static f32 load_u8(const unsigned char* p) {
    const auto* v = reinterpret_cast<const __m128i*>(p);
    return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(v))),
            _mm256_cvtepi32_ps(
                _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + 8))))};
  }
  static f32 add(f32 a, f32 b) { return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)}; }
  static f32 mul(f32 a, f32 b) { return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)}; }
  static f32 fma(f32 a, f32 b, f32 c) {
    return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
  }
  static i32 add(i32 a, i32 b) {
    return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)};
  }
  static f32 to_f32(i32 v) { return {_mm256_cvtepi32_ps(v.lo), _mm256_cvtepi32_ps(v.hi)}; }
  /// load_words() and dot_words() are defined as in simd_avx512.
  static i32 load_words(const unsigned char* p) { return load_codes(p); }
  static i32 dot_words(i32 v, i32 words) {
    return {_mm256_madd_epi16(v.lo, words.lo), _mm256_madd_epi16(v.hi, words.hi)};
  }

  static i32 load_codes(const unsigned char* p) {
    const auto* v = reinterpret_cast<const __m256i*>(p);
    return {_mm256_loadu_si256(v), _mm256_loadu_si256(v + 1)};
  }
  static i32 bit_and(i32 v, __m256i mask) {
    return {_mm256_and_si256(v.lo, mask), _mm256_and_si256(v.hi, mask)};
  }
  template <int Bits>
  static i32 shift_right(i32 v) {
    return {_mm256_srli_epi32(v.lo, Bits), _mm256_srli_epi32(v.hi, Bits)};
  }
  static codes low4(codes v) { return bit_and(v, _mm256_set1_epi8(15)); }
  static codes high4(codes v) { return bit_and(shift_right<4>(v), _mm256_set1_epi8(15)); }

  /// grouped_u4_as_u8: each row's factor and base in both halves of its lane.
  struct widening {
    i32 factor, base;
  };
  static __m256i both_halves(const unsigned char* eight) {
    const __m256i v =
        _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(eight)));
    return _mm256_or_si256(v, _mm256_slli_epi32(v, 16));
  }
  static widening load_widening(const unsigned char* line) {
    return {{both_halves(line), both_halves(line + 16)},
            {both_halves(line + 32), both_halves(line + 48)}};
  }
  template <int Shift>
  static __m256i widen_at(__m256i both, __m256i factor, __m256i base) {
    const auto sum = [&](__m256i code) {
      return _mm256_add_epi16(_mm256_mullo_epi16(code, factor), base);
    };
    const __m256i nibble = _mm256_set1_epi16(15);
    const __m256i lower = sum(_mm256_and_si256(_mm256_srli_epi16(both, Shift), nibble));
    const __m256i upper = sum(_mm256_and_si256(_mm256_srli_epi16(both, Shift + 8), nibble));
    return _mm256_or_si256(_mm256_srli_epi16(lower, 8),
                           _mm256_and_si256(upper, _mm256_set1_epi16(static_cast<short>(0xff00))));
  }
  static void widen(codes both, const widening& w, codes& low, codes& high) {
    low = {widen_at<0>(both.lo, w.factor.lo, w.base.lo),
           widen_at<0>(both.hi, w.factor.hi, w.base.hi)};
    high = {widen_at<4>(both.lo, w.factor.lo, w.base.lo),
            widen_at<4>(both.hi, w.factor.hi, w.base.hi)};
  }

  /// Adds the products of 4 * Quads columns to sum[r], for R rows.
  template <bool U8, int R, int Quads>
  static void dot(i32 (&sum)[R], const codes (&c)[Quads], const std::int8_t* x,
                  std::int64_t stride) {
    if constexpr (U8)
      dot_u8(sum, c, x, stride);
    else
      dot_u4(sum, c, x, stride);
  }
  /// The dot products of 4-bit codes with int8 activations. A quad is the codes of four
  /// neighbouring columns of 16 rows. maddubs adds up pairs of products in 16 bits: a pair is at
  /// most 2 * 15 * 128, so 16 bits hold the sums over 8 quads. The loop over rows is innermost, so
  /// that a quad of codes is loaded once for the products with all R rows.
  template <int R, int Quads>
  [[gnu::always_inline]] static void dot_u4(i32 (&sum)[R], const codes (&c)[Quads],
                                            const std::int8_t* x, std::int64_t stride) {
    static_assert(Quads <= 8);
    i32 pairs_of[R];
    for (int r = 0; r < R; ++r)
      pairs_of[r] = set1_i32(0);
    for (int q = 0; q < Quads; ++q)
      for (int r = 0; r < R; ++r) {
        const __m256i value = quad(x + r * stride + 4 * q);
        pairs_of[r].lo = _mm256_add_epi16(pairs_of[r].lo, _mm256_maddubs_epi16(c[q].lo, value));
        pairs_of[r].hi = _mm256_add_epi16(pairs_of[r].hi, _mm256_maddubs_epi16(c[q].hi, value));
        now(pairs_of[r]);
      }
    for (int r = 0; r < R; ++r)
      sum[r] = add(sum[r], join_pairs(pairs_of[r]));
  }
  /// The dot products of 8-bit codes with int8 activations x. For 8-bit codes the 16-bit sums of
  /// maddubs would saturate, so 128 is subtracted from each code, which limits a product's
  /// magnitude to 128 * 127, and 128 * sum(x) is added at the end.
  template <int R, int Quads>
  [[gnu::always_inline]] static void dot_u8(i32 (&sum)[R], const codes (&c)[Quads],
                                            const std::int8_t* x, std::int64_t stride) {
    const __m256i middle = _mm256_set1_epi8(-128);
    for (int q = 0; q < Quads; ++q) {
      const i32 code = {_mm256_xor_si256(c[q].lo, middle), _mm256_xor_si256(c[q].hi, middle)};
      const i32 magnitude = {_mm256_abs_epi8(code.lo), _mm256_abs_epi8(code.hi)};
      for (int r = 0; r < R; ++r) {
        const __m256i value = quad(x + r * stride + 4 * q);
        sum[r] = add(sum[r], join_pairs({signed_pairs(magnitude.lo, value, code.lo),
                                         signed_pairs(magnitude.hi, value, code.hi)}));
        now(sum[r]);
      }
    }
    for (int r = 0; r < R; ++r)
      sum[r] = add(sum[r], set1_i32(128 * sum_of<4 * Quads>(x + r * stride)));
  }
  /// The sum of N signed bytes, 8 or a multiple of 16.
  template <int N>
  static std::int32_t sum_of(const std::int8_t* x) {
    constexpr int step = N < 16 ? N : 16;
    __m128i sums = _mm_setzero_si128();
    for (int i = 0; i < N; i += step) {
      const auto* from = reinterpret_cast<const __m128i*>(x + i);
      const __m128i v = step == 8 ? _mm_loadl_epi64(from) : _mm_loadu_si128(from);
      const __m128i above_zero = _mm_xor_si128(v, _mm_set1_epi8(-128));
      sums = _mm_add_epi64(sums, _mm_sad_epu8(above_zero, _mm_setzero_si128()));
    }
    const std::int32_t of_16 = _mm_cvtsi128_si32(sums) + _mm_extract_epi32(sums, 2);
    // With 8 bytes the upper half of the register is zeros, which count 128 each.
    return of_16 - 128 * (N < 16 ? 16 : N);
  }
  /// Forces the compiler to compute the value at this point. GCC 12 would otherwise delay the
  /// additions until all products are computed, for which there are not enough registers.
  static void now(i32& v) { asm("" : "+x"(v.lo), "+x"(v.hi)); }
  static __m256i signed_pairs(__m256i magnitude, __m256i value, __m256i sign) {
    return _mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(value, sign));
  }
  static i32 join_pairs(i32 v) {
    const __m256i ones = _mm256_set1_epi16(1);
    return {_mm256_madd_epi16(v.lo, ones), _mm256_madd_epi16(v.hi, ones)};
  }
  static __m256i quad(const std::int8_t* x) {
    std::int32_t v;
    __builtin_memcpy(&v, x, sizeof v);
    return _mm256_set1_epi32(v);
  }
  static void bytes_to_f32(codes v, f32* out) {
    const __m256i mask = _mm256_set1_epi32(255);
    out[0] = to_f32(bit_and(v, mask));
    out[1] = to_f32(bit_and(shift_right<8>(v), mask));
    out[2] = to_f32(bit_and(shift_right<16>(v), mask));
    out[3] = to_f32(shift_right<24>(v));
  }
  static void nibbles_to_f32(codes v, f32* out) {
    const __m256i mask = _mm256_set1_epi32(15);
    out[0] = to_f32(bit_and(v, mask));
    out[1] = to_f32(bit_and(shift_right<8>(v), mask));
    out[2] = to_f32(bit_and(shift_right<16>(v), mask));
    out[3] = to_f32(bit_and(shift_right<24>(v), mask));
    out[4] = to_f32(bit_and(shift_right<4>(v), mask));
    out[5] = to_f32(bit_and(shift_right<12>(v), mask));
    out[6] = to_f32(bit_and(shift_right<20>(v), mask));
    out[7] = to_f32(shift_right<28>(v));
  }

  static pairs load_pairs(const std::uint16_t* p) {
    return load_codes(reinterpret_cast<const unsigned char*>(p));
  }
  static void store_pairs(std::uint16_t* p, pairs v) {
    auto* to = reinterpret_cast<__m256i*>(p);
    _mm256_storeu_si256(to, v.lo);
    _mm256_storeu_si256(to + 1, v.hi);
  }
  static f32 first_of(pairs v) {
    return {_mm256_castsi256_ps(_mm256_slli_epi32(v.lo, 16)),
            _mm256_castsi256_ps(_mm256_slli_epi32(v.hi, 16))};
  }
  static f32 second_of(pairs v) {
    const i32 r = bit_and(v, _mm256_set1_epi32(static_cast<int>(0xffff0000U)));
    return {_mm256_castsi256_ps(r.lo), _mm256_castsi256_ps(r.hi)};
  }
  /// Rounds each f32 lane to bf16, to nearest even; the bf16 is the upper half of the lane.
  /// Infinities and most NaNs stay what they are. A NaN with the largest payload would overflow to
  /// another value, but no weight is such a NaN.
  static __m256i round_up(__m256 x) {
    const __m256i v = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(v, 16), _mm256_set1_epi32(1));
    return _mm256_add_epi32(v, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  }
  static __m256i round_pair(__m256 first, __m256 second) {
    return _mm256_blend_epi16(_mm256_srli_epi32(round_up(first), 16), round_up(second), 0xaa);
  }
  static pairs round_pairs(f32 first, f32 second) {
    return {round_pair(first.lo, second.lo), round_pair(first.hi, second.hi)};
  }
  static f32 dot_pairs(f32 sum, pairs w, const std::uint16_t* x) {
    sum = fma(first_of(w), set1(detail::bf16_to_f32(x[0])), sum);
    return fma(second_of(w), set1(detail::bf16_to_f32(x[1])), sum);
  }

  static f32 abs(f32 v) {
    const __m256 sign = _mm256_set1_ps(-0.0F);
    return {_mm256_andnot_ps(sign, v.lo), _mm256_andnot_ps(sign, v.hi)};
  }
  static f32 max(f32 a, f32 b) { return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)}; }
  /// out[i] is the largest element of v[i].
  static void largest_4(const f32 (&v)[4], float* out) {
    __m256 m[4];
    for (int i = 0; i < 4; ++i)
      m[i] = _mm256_max_ps(v[i].lo, v[i].hi);
    const __m256 m01 =
        _mm256_max_ps(_mm256_unpacklo_ps(m[0], m[1]), _mm256_unpackhi_ps(m[0], m[1]));
    const __m256 m23 =
        _mm256_max_ps(_mm256_unpacklo_ps(m[2], m[3]), _mm256_unpackhi_ps(m[2], m[3]));
    const __m256 all =
        _mm256_max_ps(_mm256_shuffle_ps(m01, m23, 0x44), _mm256_shuffle_ps(m01, m23, 0xee));
    _mm_store_ps(out, _mm_max_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1)));
  }
  static void store_i8(std::int8_t* p, f32 v) { narrow(p, round(v)); }
  static void store_with_residual(std::int8_t* codes, std::int8_t* residual, f32 v) {
    constexpr int bits = detail::residual_bits;
    const i32 whole = round(v);
    const i32 middle = add(whole, set1_i32(1 << (bits - 1)));
    const i32 top = {_mm256_srai_epi32(middle.lo, bits), _mm256_srai_epi32(middle.hi, bits)};
    const i32 back = {_mm256_slli_epi32(top.lo, bits), _mm256_slli_epi32(top.hi, bits)};
    narrow(codes, top);
    narrow(residual, {_mm256_sub_epi32(whole.lo, back.lo), _mm256_sub_epi32(whole.hi, back.hi)});
  }
  static i32 round(f32 v) { return {_mm256_cvtps_epi32(v.lo), _mm256_cvtps_epi32(v.hi)}; }
  static void narrow(std::int8_t* p, i32 v) {
    const __m256i halves = _mm256_permute4x64_epi64(_mm256_packs_epi32(v.lo, v.hi), 0xd8);
    const __m128i bytes =
        _mm_packs_epi16(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
  }
};

} // namespace
} // namespace twill::gpu::host
