// int8 micro-kernels over a SIMD policy: grouped weights times activations quantised per 32
// columns, to one digit or two.
#pragma once

#include "gpu/host/tile_common.hpp"

namespace twill::gpu::host {
namespace {

template <class S, bool U8, int Quads>
inline const unsigned char* load_segment(const unsigned char* at,
                                         typename S::codes (&codes)[Quads]) {
  if constexpr (U8) {
    for (int i = 0; i < Quads; ++i)
      codes[i] = S::load_codes(at + i * 64);
    return at + Quads * 64;
  } else {
    for (int i = 0; i < Quads / 2; ++i) {
      const typename S::codes both = S::load_codes(at + i * 64);
      codes[2 * i] = S::low4(both);
      codes[2 * i + 1] = S::high4(both);
    }
    return at + Quads * 32;
  }
}

template <class S, bool U8, int Segment, bool Stored, int Digits, int R>
inline void int8_rows(const tile& t, const quantised_rows& x, std::int64_t block,
                      std::int64_t row) {
  constexpr int quads = Segment / 4;
  const packed_view& w = *t.weights;
  const unsigned char* at = w.codes + block * w.codes_stride;
  const unsigned char* scales = w.scales + block * w.scales_stride;
  const std::int64_t groups = w.cols / w.group;
  const std::int64_t segments = w.group / Segment;
  const std::int8_t* values = x.values + row * x.values_stride;
  const float* row_scales = x.scales + row * x.segments;
  const std::uint32_t* terms = x.terms + row * x.segments;
  typename S::f32 sum[R];
  for (int r = 0; r < R; ++r)
    sum[r] = S::zero();

  for (std::int64_t g = 0; g < groups; ++g) {
    const typename S::f32 scale = load_scale<S>(w, scales);
    typename S::f32 offset;
    if constexpr (Stored) offset = load_offset<S>(w, scales, scale);
    scales += w.terms_stride;
    for (std::int64_t s = 0; s < segments; ++s) {
      typename S::codes codes[quads];
      at = load_segment<S, U8>(at, codes);
      typename S::i32 exact[R];
      if constexpr (Digits == 2 && R == 1) { // the digits apart: neither waits for the other
        typename S::i32 low[1] = {S::set1_i32(Stored ? 0 : static_cast<std::int32_t>(terms[0]))};
        exact[0] = S::set1_i32(0);
        S::template dot<U8, 1>(exact, codes, values, x.values_stride);
        S::template dot<U8, 1>(low, codes, values + x.low_digits, x.values_stride);
        exact[0] = S::add(S::template shift_left<detail::high_digit_bits>(exact[0]), low[0]);
      } else if constexpr (Digits == 2) {
        for (int r = 0; r < R; ++r)
          exact[r] = S::set1_i32(0);
        S::template dot<U8, R>(exact, codes, values, x.values_stride);
        for (int r = 0; r < R; ++r)
          exact[r] = S::template shift_left<detail::high_digit_bits>(exact[r]);
        S::template dot<U8, R>(exact, codes, values + x.low_digits, x.values_stride);
        if constexpr (!Stored)
          for (int r = 0; r < R; ++r)
            exact[r] =
                S::add(exact[r], S::set1_i32(static_cast<std::int32_t>(terms[r * x.segments])));
      } else {
        for (int r = 0; r < R; ++r)
          exact[r] = S::set1_i32(Stored ? 0 : static_cast<std::int32_t>(terms[r * x.segments]));
        S::template dot<U8, R>(exact, codes, values, x.values_stride);
      }
      for (int r = 0; r < R; ++r) {
        const auto both = S::mul(scale, S::set1(row_scales[r * x.segments]));
        sum[r] = S::fma(both, S::to_f32(exact[r]), sum[r]);
        if constexpr (Stored)
          sum[r] = S::fma(offset, S::set1(detail::bits_to_f32(terms[r * x.segments])), sum[r]);
      }
      values += Segment;
      ++row_scales;
      ++terms;
    }
  }
  for (int r = 0; r < R; ++r)
    finish<S>(t, block, row + r, sum[r]);
}

template <class S, bool U8, int Segment, bool Stored, int Digits>
void tile_int8_of(const tile& t, const quantised_rows& x) {
  constexpr int rows = Segment == 8 ? 2 : S::int8_rows;
  row_panels<rows>(t.m, [&](auto r, std::int64_t row) {
    for (std::int64_t b = t.first_block; b < t.end_block; ++b)
      int8_rows<S, U8, Segment, Stored, Digits, decltype(r)::value>(t, x, b, row);
  });
}

template <class S>
void tile_int8(const tile& t, const quantised_rows& x) {
  const packed_view& w = *t.weights;
  const auto with = [&](auto u8, auto segment, auto digits) {
    constexpr bool is_u8 = decltype(u8)::value != 0;
    constexpr int columns = decltype(segment)::value;
    constexpr int n = decltype(digits)::value;
    w.offsets_stored ? tile_int8_of<S, is_u8, columns, true, n>(t, x)
                     : tile_int8_of<S, is_u8, columns, false, n>(t, x);
  };
  const auto pick = [&](auto u8, auto segment) {
    x.low_digits != 0 ? with(u8, segment, count<2>{}) : with(u8, segment, count<1>{});
  };
  const bool u8 = w.kind == weight_kind::grouped_u8;
  if (w.segment == 32)
    u8 ? pick(count<1>{}, count<32>{}) : pick(count<0>{}, count<32>{});
  else if (w.segment == 16)
    u8 ? pick(count<1>{}, count<16>{}) : pick(count<0>{}, count<16>{});
  else
    u8 ? pick(count<1>{}, count<8>{}) : pick(count<0>{}, count<8>{});
}

/// 32 activations to int8 by their largest magnitude; the scale they carry. `low`: the place of
/// their low digits, or null.
template <class S>
inline float quantise_32(const float* x, std::int8_t* out, std::int8_t* low) {
  const typename S::f32 a = S::load(x);
  const typename S::f32 b = S::load(x + 16);
  const float largest = S::largest(S::max(S::abs(a), S::abs(b)));
  // Below this the reciprocal overflows; such a group is zero for every purpose.
  const float steps = low == nullptr ? 127.0F : 127.0F * detail::high_digit;
  const float inverse = largest > 1e-30F ? steps / largest : 0.0F;
  if (low == nullptr) {
    S::store_i8(out, S::mul(a, S::set1(inverse)));
    S::store_i8(out + 16, S::mul(b, S::set1(inverse)));
  } else {
    S::store_digits(out, low, S::mul(a, S::set1(inverse)));
    S::store_digits(out + 16, low + 16, S::mul(b, S::set1(inverse)));
  }
  return largest > 1e-30F ? largest / steps : 0.0F;
}

template <class S>
inline std::int32_t sum_of(const std::int8_t* q, std::int64_t n) {
  if (n == 32) return S::sum_32(q);
  std::int32_t sum = 0;
  for (std::int64_t i = 0; i < n; ++i)
    sum += q[i];
  return sum;
}

template <class S>
void quantise(const packed_view& w, const float* x, const quantised_rows& out, std::int64_t row) {
  std::int8_t* q = out.values + row * out.values_stride;
  std::int8_t* low = out.low_digits != 0 ? q + out.low_digits : nullptr;
  float* scales = out.scales + row * out.segments;
  std::uint32_t* terms = out.terms + row * out.segments;
  for (std::int64_t k = 0; k < w.cols; k += detail::activation_group) {
    const std::int64_t n = w.cols - k < 32 ? w.cols - k : 32;
    float padded[32] = {};
    const float* group = x + k;
    if (n < 32) {
      for (std::int64_t i = 0; i < n; ++i)
        padded[i] = group[i];
      group = padded;
    }
    const float scale = quantise_32<S>(group, q + k, low == nullptr ? nullptr : low + k);
    for (std::int64_t s = 0; s < n; s += w.segment) {
      std::int32_t sum = sum_of<S>(q + k + s, w.segment);
      if (low != nullptr) sum = sum * detail::high_digit + sum_of<S>(low + k + s, w.segment);
      *scales++ = scale;
      *terms++ = w.offsets_stored ? detail::f32_to_bits(scale * static_cast<float>(sum))
                                  : static_cast<std::uint32_t>(w.offset_factor * sum);
    }
  }
}

} // namespace
} // namespace twill::gpu::host
