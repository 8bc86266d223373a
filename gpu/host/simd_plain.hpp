// The SIMD policy, that is, the vector operations that tile_templates.hpp takes as a template
// argument, in plain C++ with the compilers' vector extension (GCC and Clang, any processor).
#pragma once

#include <cstdint>
#include <cstring>

#include "gpu/detail/packed_view.hpp"

// Silences GCC's warning that code without AVX-512 passes 64-byte vectors differently: no such
// vector is passed between files.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace twill::gpu::host {
namespace {

struct simd_plain {
  typedef float f32 __attribute__((vector_size(64)));
  typedef std::int32_t i32 __attribute__((vector_size(64)));
  typedef std::uint32_t u32 __attribute__((vector_size(64)));
  using codes = u32;
  using pairs = u32;
  static constexpr bool int8_gemm = false;
  static constexpr int gemv_rows = 4;
  static constexpr int f32_rows = 4;
  static constexpr int bf16_rows = 4;

  static f32 zero() { return f32{}; }
  static f32 set1(float x) { return x - f32{}; }
  static i32 set1_i32(std::int32_t x) { return x - i32{}; }
  static f32 load(const float* p) {
    f32 v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  static void store(float* p, f32 v) { std::memcpy(p, &v, sizeof v); }
  static f32 load_n(const float* p, int n) {
    f32 v{};
    std::memcpy(&v, p, static_cast<std::size_t>(n) * sizeof(float));
    return v;
  }
  static void store_n(float* p, f32 v, int n) {
    std::memcpy(p, &v, static_cast<std::size_t>(n) * sizeof(float));
  }
  static f32 load_f16(const std::uint16_t* p) {
    f32 v;
    for (int i = 0; i < 16; ++i)
      v[i] = detail::f16_to_f32(p[i]);
    return v;
  }
  static f32 load_u8(const unsigned char* p) {
    f32 v;
    for (int i = 0; i < 16; ++i)
      v[i] = p[i];
    return v;
  }
  static f32 add(f32 a, f32 b) { return a + b; }
  static f32 mul(f32 a, f32 b) { return a * b; }
  /// Rounds twice, unlike fma() of the other policies. Without a processor instruction for it, a
  /// fused multiply-add would be a slow library call.
  static f32 fma(f32 a, f32 b, f32 c) { return a * b + c; }
  static f32 to_f32(i32 v) { return __builtin_convertvector(v, f32); }
  /// load_words() and dot_words() are defined as in simd_avx512.
  static i32 load_words(const unsigned char* p) {
    i32 v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  static i32 dot_words(i32 v, i32 words) {
    const auto lower = [](i32 x) { return ((x & 0xffff) ^ 0x8000) - 0x8000; };
    return lower(v) * lower(words) + (v >> 16) * (words >> 16);
  }

  static u32 load_codes(const unsigned char* p) {
    u32 v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  static codes low4(codes v) { return v & 0x0f0f0f0fU; }
  static codes high4(codes v) { return (v >> 4) & 0x0f0f0f0fU; }
  /// grouped_u4_as_u8: each row's factor and base.
  struct widening {
    u32 factor, base;
  };
  static widening load_widening(const unsigned char* line) {
    std::uint16_t both[32];
    std::memcpy(both, line, sizeof both);
    widening w;
    for (int i = 0; i < 16; ++i) {
      w.factor[i] = both[i];
      w.base[i] = both[16 + i];
    }
    return w;
  }
  static void widen(codes both, const widening& w, codes& low, codes& high) {
    low = high = u32{};
    for (int i = 0; i < 32; i += 8) {
      low |= ((w.factor * ((both >> i) & 15U) + w.base) >> 8 & 255U) << i;
      high |= ((w.factor * ((both >> (i + 4)) & 15U) + w.base) >> 8 & 255U) << i;
    }
  }
  /// Adds the products of 4 * Quads columns to sum[r], for R rows.
  template <bool U8, int R, int Quads>
  static void dot(i32 (&sum)[R], const codes (&c)[Quads], const std::int8_t* x,
                  std::int64_t stride) {
    for (int q = 0; q < Quads; ++q)
      for (int i = 0; i < 4; ++i) {
        const u32 code = (c[q] >> (8 * i)) & 255U;
        i32 value;
        std::memcpy(&value, &code, sizeof value);
        for (int r = 0; r < R; ++r)
          sum[r] += value * static_cast<std::int32_t>(x[r * stride + 4 * q + i]);
      }
  }
  static f32 code_to_f32(u32 code) { return __builtin_convertvector(code, f32); }
  static void bytes_to_f32(codes v, f32* out) {
    for (int i = 0; i < 4; ++i)
      out[i] = code_to_f32((v >> (8 * i)) & 255U);
  }
  static void nibbles_to_f32(codes v, f32* out) {
    for (int i = 0; i < 4; ++i) {
      out[i] = code_to_f32((v >> (8 * i)) & 15U);
      out[i + 4] = code_to_f32((v >> (8 * i + 4)) & 15U);
    }
  }

  static pairs load_pairs(const std::uint16_t* p) {
    pairs v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  static void store_pairs(std::uint16_t* p, pairs v) { std::memcpy(p, &v, sizeof v); }
  static f32 reinterpret(u32 v) {
    f32 r;
    std::memcpy(&r, &v, sizeof r);
    return r;
  }
  static f32 first_of(pairs v) { return reinterpret(v << 16); }
  static f32 second_of(pairs v) { return reinterpret(v & 0xffff0000U); }
  static pairs round_pairs(f32 first, f32 second) {
    pairs v;
    for (int i = 0; i < 16; ++i)
      v[i] = detail::f32_to_bf16(first[i]) |
             static_cast<std::uint32_t>(detail::f32_to_bf16(second[i])) << 16;
    return v;
  }
  static f32 dot_pairs(f32 sum, pairs w, const std::uint16_t* x) {
    sum = fma(first_of(w), set1(detail::bf16_to_f32(x[0])), sum);
    return fma(second_of(w), set1(detail::bf16_to_f32(x[1])), sum);
  }

  static f32 abs(f32 v) {
    u32 bits;
    std::memcpy(&bits, &v, sizeof bits);
    return reinterpret(bits & 0x7fffffffU);
  }
  static f32 max(f32 a, f32 b) {
    f32 r;
    for (int i = 0; i < 16; ++i)
      r[i] = a[i] > b[i] ? a[i] : b[i];
    return r;
  }
  /// out[i] is the largest element of v[i].
  static void largest_4(const f32 (&v)[4], float* out) {
    for (int i = 0; i < 4; ++i) {
      out[i] = v[i][0];
      for (int l = 1; l < 16; ++l)
        out[i] = v[i][l] > out[i] ? v[i][l] : out[i];
    }
  }
  /// Rounds to nearest even and saturates; NaN gives -128 like the vector instructions.
  static void store_i8(std::int8_t* p, f32 v) {
    for (int i = 0; i < 16; ++i) {
      const bool inside = v[i] >= -128.0F && v[i] <= 127.0F;
      p[i] = static_cast<std::int8_t>(inside ? __builtin_rintf(v[i]) : v[i] > 127.0F ? 127 : -128);
    }
  }
  static void store_with_residual(std::int8_t* codes, std::int8_t* residual, f32 v) {
    constexpr float base = detail::residual_ratio;
    for (int i = 0; i < 16; ++i) {
      // A NaN becomes any number, because the scale is a NaN as well.
      const float whole = v[i] > -128 * base && v[i] < 127.5F * base ? __builtin_rintf(v[i]) : 0.0F;
      const float top = __builtin_floorf((whole + base / 2) / base);
      codes[i] = static_cast<std::int8_t>(top);
      residual[i] = static_cast<std::int8_t>(whole - top * base);
    }
  }
  /// out[g] is the sum of bytes [32 g, 32 g + 32).
  static void sum_4(const std::int8_t* p, std::int32_t* out) {
    for (int g = 0; g < 4; ++g) {
      out[g] = 0;
      for (int i = 0; i < 32; ++i)
        out[g] += p[32 * g + i];
    }
  }
  /// out[g] is the sum of the magnitudes of bytes [32 g, 32 g + 32).
  static void sum_magnitudes_4(const std::int8_t* p, std::int32_t* out) {
    for (int g = 0; g < 4; ++g) {
      out[g] = 0;
      for (int i = 0; i < 32; ++i)
        out[g] += p[32 * g + i] < 0 ? -p[32 * g + i] : p[32 * g + i];
    }
  }
};

} // namespace
} // namespace twill::gpu::host
