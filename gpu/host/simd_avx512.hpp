// The SIMD policy, that is, the vector operations that tile_templates.hpp takes as a template
// argument, for AVX-512 F, BW, VL and DQ; with VNNI and BF16 where the including file is compiled
// for them.
#pragma once

#include <cstdint>

#include <immintrin.h>

#include "gpu/host/byte_sums.hpp"

// Silences GCC's warning that code without AVX-512 passes 64-byte vectors differently: no such
// vector is passed between files.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace twill::gpu::host {
namespace {

struct simd_avx512 : byte_sums {
  using f32 = __m512;
  using i32 = __m512i;
  using codes = __m512i;
  using pairs = __m512i;
  static constexpr int gemv_rows = 8;
  static constexpr int f32_rows = 6;
  static constexpr int bf16_rows = 10;

  static f32 zero() { return _mm512_setzero_ps(); }
  static f32 set1(float x) { return _mm512_set1_ps(x); }
  static i32 set1_i32(std::int32_t x) { return _mm512_set1_epi32(x); }
  static f32 load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, f32 v) { _mm512_storeu_ps(p, v); }
  static __mmask16 first_n(int n) { return static_cast<__mmask16>((1U << n) - 1U); }
  static f32 load_n(const float* p, int n) {
    return n == 16 ? load(p) : _mm512_maskz_loadu_ps(first_n(n), p);
  }
  static void store_n(float* p, f32 v, int n) {
    if (n == 16) return store(p, v);
    _mm512_mask_storeu_ps(p, first_n(n), v);
  }
  static f32 load_f16(const std::uint16_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static f32 load_u8(const unsigned char* p) {
    return _mm512_cvtepi32_ps(
        _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  }
  static f32 add(f32 a, f32 b) { return _mm512_add_ps(a, b); }
  static f32 mul(f32 a, f32 b) { return _mm512_mul_ps(a, b); }
  static f32 fma(f32 a, f32 b, f32 c) { return _mm512_fmadd_ps(a, b, c); }
  static f32 to_f32(i32 v) { return _mm512_cvtepi32_ps(v); }
  /// Loads 16 pairs of 16-bit integers.
  static i32 load_words(const unsigned char* p) { return _mm512_loadu_si512(p); }
  /// For each 32-bit element of the vectors: the lower 16 bits of `v` times those of `words`, plus
  /// the upper 16 bits of `v` times those of `words`.
  static i32 dot_words(i32 v, i32 words) { return _mm512_madd_epi16(v, words); }

  static f32 as_f32(i32 bits) { return _mm512_castsi512_ps(bits); }

  static codes load_codes(const unsigned char* p) { return _mm512_loadu_si512(p); }
  static void store_codes(unsigned char* p, codes v) { _mm512_storeu_si512(p, v); }
  static codes low4(codes v) { return _mm512_and_si512(v, _mm512_set1_epi8(15)); }
  static codes high4(codes v) {
    return _mm512_and_si512(_mm512_srli_epi32(v, 4), _mm512_set1_epi8(15));
  }
  /// grouped_u4_as_u8: each row's factor and base in both halves of its lane.
  struct widening {
    i32 factor, base;
  };
  static widening load_widening(const unsigned char* line) {
    const i32 both = _mm512_loadu_si512(line);
    const i32 pairs_of =
        _mm512_set_epi32(0xf000f, 0xe000e, 0xd000d, 0xc000c, 0xb000b, 0xa000a, 0x90009, 0x80008,
                         0x70007, 0x60006, 0x50005, 0x40004, 0x30003, 0x20002, 0x10001, 0);
    return {_mm512_permutexvar_epi16(pairs_of, both),
            _mm512_permutexvar_epi16(_mm512_add_epi16(pairs_of, _mm512_set1_epi16(16)), both)};
  }
  /// Widens the 4-bit codes of grouped_u4_as_u8 weights (weight_kind.hpp) in `both` to 8 bits:
  /// `low` gets the codes of the low nibbles and `high` those of the high nibbles. The upper byte
  /// of the 16-bit sum factor * code + base is the 8-bit code. Each 16-bit word of a result holds
  /// two codes: the sum of the first is shifted to the lower byte, and the sum of the second is
  /// already in place.
  static void widen(codes both, const widening& w, codes& low, codes& high) {
    const i32 nibble = _mm512_set1_epi16(15);
    const auto sum = [&w](i32 code) {
      return _mm512_add_epi16(_mm512_mullo_epi16(code, w.factor), w.base);
    };
    const auto join = [](i32 lower, i32 upper) { // lower >> 8 | (upper & 0xff00)
      return _mm512_ternarylogic_epi32(_mm512_srli_epi16(lower, 8), upper,
                                       _mm512_set1_epi16(static_cast<short>(0xff00)), 0xf8);
    };
    low = join(sum(_mm512_and_si512(both, nibble)),
               sum(_mm512_and_si512(_mm512_srli_epi16(both, 8), nibble)));
    high = join(sum(_mm512_and_si512(_mm512_srli_epi16(both, 4), nibble)),
                sum(_mm512_srli_epi16(both, 12)));
  }
  static i32 quad(const std::int8_t* x) {
    std::int32_t v;
    __builtin_memcpy(&v, x, sizeof v);
    return _mm512_set1_epi32(v);
  }
#ifdef __AVX512VNNI__
  static constexpr bool int8_gemm = true;
  /// gate / (1 + exp(-gate)) * up, with the same bits as gpu::silu_mul(), which uses fast_exp() of
  /// kernel_math.hpp.
  static f32 silu_mul(f32 gate, f32 up) {
    const auto at = [](float c) { return _mm512_set1_ps(c); };
    f32 x = _mm512_max_ps(at(-87.3F), _mm512_sub_ps(zero(), gate));
    x = _mm512_min_ps(at(88.3F), x);
    const f32 n = _mm512_sub_ps(fma(x, at(1.44269504F), at(12582912.0F)), at(12582912.0F));
    const f32 r = fma(n, at(2.12194440e-4F), fma(n, at(-0.693359375F), x));
    f32 p = fma(at(1.9875691500e-4F), r, at(1.3981999507e-3F));
    p = fma(p, r, at(8.3334519073e-3F));
    p = fma(p, r, at(4.1665795894e-2F));
    p = fma(p, r, at(1.6666665459e-1F));
    p = fma(p, r, at(5.0000001201e-1F));
    p = add(fma(p, mul(r, r), r), at(1.0F));
    const i32 exponent =
        _mm512_slli_epi32(_mm512_add_epi32(_mm512_cvttps_epi32(n), _mm512_set1_epi32(127)), 23);
    return mul(_mm512_div_ps(gate, add(at(1.0F), mul(p, as_f32(exponent)))), up);
  }
  static i32 dot_quad(i32 sum, codes c, i32 x) {
    return _mm512_dpbusd_epi32(sum, c, x);
  }
  /// Adds the products of 4 * Quads columns to sum[r], for R rows. The loop over rows is innermost,
  /// and a single row uses two sums, so that consecutive instructions do not depend on each other.
  template <bool U8, int R, int Quads>
  static void dot(i32 (&sum)[R], const codes (&c)[Quads], const std::int8_t* x,
                  std::int64_t stride) {
    if constexpr (R == 1 && Quads % 2 == 0) {
      i32 other = _mm512_setzero_si512();
      for (int q = 0; q < Quads; q += 2) {
        sum[0] = _mm512_dpbusd_epi32(sum[0], c[q], quad(x + 4 * q));
        other = _mm512_dpbusd_epi32(other, c[q + 1], quad(x + 4 * q + 4));
      }
      sum[0] = _mm512_add_epi32(sum[0], other);
      return;
    }
    for (int q = 0; q < Quads; ++q)
      for (int r = 0; r < R; ++r)
        sum[r] = _mm512_dpbusd_epi32(sum[r], c[q], quad(x + r * stride + 4 * q));
  }
#else
  static constexpr bool int8_gemm = false;
  /// 8-bit codes would saturate maddubs, so products have 16 bits.
  template <int Quads>
  static i32 dot_u8(const codes (&c)[Quads], const std::int8_t* x) {
    i32 sum = _mm512_setzero_si512();
    for (int q = 0; q < Quads; ++q) {
      const i32 value = quad(x + 4 * q);
      const i32 even = _mm512_srai_epi16(_mm512_slli_epi16(value, 8), 8);
      const i32 odd = _mm512_srai_epi16(value, 8);
      const i32 low = _mm512_and_si512(c[q], _mm512_set1_epi16(255));
      sum = _mm512_add_epi32(sum, _mm512_madd_epi16(low, even));
      sum = _mm512_add_epi32(sum, _mm512_madd_epi16(_mm512_srli_epi16(c[q], 8), odd));
    }
    return sum;
  }
  /// 4-bit codes: a pair's product is at most 2 * 15 * 128, so 8 quads fit 16 bits.
  template <int Quads>
  static i32 dot_u4(const codes (&c)[Quads], const std::int8_t* x) {
    i32 sum = _mm512_setzero_si512();
    for (int q = 0; q < Quads; ++q)
      sum = _mm512_add_epi16(sum, _mm512_maddubs_epi16(c[q], quad(x + 4 * q)));
    return _mm512_madd_epi16(sum, _mm512_set1_epi16(1));
  }
  /// Adds the products of 4 * Quads columns to sum[r], for R rows.
  template <bool U8, int R, int Quads>
  static void dot(i32 (&sum)[R], const codes (&c)[Quads], const std::int8_t* x,
                  std::int64_t stride) {
    for (int r = 0; r < R; ++r) {
      const std::int8_t* row = x + r * stride;
      if constexpr (U8)
        sum[r] = _mm512_add_epi32(sum[r], dot_u8(c, row));
      else
        sum[r] = _mm512_add_epi32(sum[r], dot_u4(c, row));
    }
  }
#endif
  static void bytes_to_f32(codes v, f32* out) {
    const i32 mask = _mm512_set1_epi32(255);
    out[0] = to_f32(_mm512_and_si512(v, mask));
    out[1] = to_f32(_mm512_and_si512(_mm512_srli_epi32(v, 8), mask));
    out[2] = to_f32(_mm512_and_si512(_mm512_srli_epi32(v, 16), mask));
    out[3] = to_f32(_mm512_srli_epi32(v, 24));
  }
  /// A table look-up converts the codes; it reads only the low 4 bits of each lane's index, so no
  /// mask is needed.
  static void nibbles_to_f32(codes v, f32* out) {
    const f32 table = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    out[0] = _mm512_permutexvar_ps(v, table);
    out[1] = _mm512_permutexvar_ps(_mm512_srli_epi32(v, 8), table);
    out[2] = _mm512_permutexvar_ps(_mm512_srli_epi32(v, 16), table);
    out[3] = _mm512_permutexvar_ps(_mm512_srli_epi32(v, 24), table);
    out[4] = _mm512_permutexvar_ps(_mm512_srli_epi32(v, 4), table);
    out[5] = _mm512_permutexvar_ps(_mm512_srli_epi32(v, 12), table);
    out[6] = _mm512_permutexvar_ps(_mm512_srli_epi32(v, 20), table);
    out[7] = _mm512_permutexvar_ps(_mm512_srli_epi32(v, 28), table);
  }

  static pairs load_pairs(const std::uint16_t* p) {
    return _mm512_loadu_si512(p);
  }
  static void store_pairs(std::uint16_t* p, pairs v) {
    _mm512_storeu_si512(p, v);
  }
  static f32 first_of(pairs v) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(v, 16));
  }
  static f32 second_of(pairs v) {
    return _mm512_castsi512_ps(
        _mm512_and_si512(v, _mm512_set1_epi32(static_cast<int>(0xffff0000U))));
  }
#ifdef __AVX512BF16__
  static pairs round_pairs(f32 first, f32 second) {
    const auto halves = (__m512i)_mm512_cvtne2ps_pbh(second, first);
    const __m512i interleave =
        _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                         21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    return _mm512_permutexvar_epi16(interleave, halves);
  }
  static f32 dot_pairs(f32 sum, pairs w, const std::uint16_t* x) {
    std::int32_t both;
    __builtin_memcpy(&both, x, sizeof both);
    return _mm512_dpbf16_ps(sum, (__m512bh)w, (__m512bh)_mm512_set1_epi32(both));
  }
#else
  /// Round to nearest even, in the upper half of each lane.
  static __m512i round_up(f32 x) {
    const __m512i v = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(v, 16), _mm512_set1_epi32(1));
    return _mm512_add_epi32(v, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  }
  static pairs round_pairs(f32 first, f32 second) {
    return _mm512_mask_blend_epi16(0xaaaaaaaaU, _mm512_srli_epi32(round_up(first), 16),
                                   round_up(second));
  }
  static f32 dot_pairs(f32 sum, pairs w, const std::uint16_t* x) {
    sum = fma(first_of(w), set1(detail::bf16_to_f32(x[0])), sum);
    return fma(second_of(w), set1(detail::bf16_to_f32(x[1])), sum);
  }
#endif

  static f32 abs(f32 v) {
    return _mm512_abs_ps(v);
  }
  static f32 max(f32 a, f32 b) {
    return _mm512_max_ps(a, b);
  }
  /// out[i] is the largest element of v[i].
  static void largest_4(const f32 (&v)[4], float* out) {
    const f32 v01 = max(_mm512_unpacklo_ps(v[0], v[1]), _mm512_unpackhi_ps(v[0], v[1]));
    const f32 v23 = max(_mm512_unpacklo_ps(v[2], v[3]), _mm512_unpackhi_ps(v[2], v[3]));
    const f32 all = max(_mm512_shuffle_ps(v01, v23, 0x44), _mm512_shuffle_ps(v01, v23, 0xee));
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps(all, 1));
    _mm_store_ps(out, _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1)));
  }
  static void store_i8(std::int8_t* p, f32 v) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(v)));
  }
  static void store_with_residual(std::int8_t* codes, std::int8_t* residual, f32 v) {
    constexpr int bits = detail::residual_bits;
    const i32 whole = _mm512_cvtps_epi32(v);
    const i32 top =
        _mm512_srai_epi32(_mm512_add_epi32(whole, _mm512_set1_epi32(1 << (bits - 1))), bits);
    const i32 rest = _mm512_sub_epi32(whole, _mm512_slli_epi32(top, bits));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(codes), _mm512_cvtsepi32_epi8(top));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(residual), _mm512_cvtsepi32_epi8(rest));
  }
};

} // namespace
} // namespace twill::gpu::host
