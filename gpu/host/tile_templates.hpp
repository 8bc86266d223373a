// The micro-kernels, written once over a SIMD policy S; each kernels_*.cpp makes a table of them.
//
// Everything is in an unnamed namespace and nothing of the standard library is called: a function
// compiled here for a wide instruction set must never be the copy that other files link against.
//
// Order of sums, the same for every R (rows at once), B (blocks at once) and path: one accumulator
// per output, columns ascending. That is what makes a row's result independent of its batch.
// A policy offers 16 floats (f32), 16 int32 (i32), 64 code bytes (codes), 16 bf16 pairs (pairs).
#pragma once

#include "gpu/host/kernels.hpp"

namespace twill::gpu::host {
namespace {

using detail::packed_view;

template <int N>
struct count {
  static constexpr int value = N;
};

/// Calls f(count<n>) for 1 <= n <= Max.
template <int Max, class F>
inline void with_count(std::int64_t n, F&& f) {
  if constexpr (Max > 0) {
    if (n == Max)
      f(count<Max>{});
    else
      with_count<Max - 1>(n, f);
  }
}

/// Cuts m rows into panels of at most Max: f(count<R>, first row).
template <int Max, class F>
inline void row_panels(std::int64_t m, F&& f) {
  std::int64_t row = 0;
  for (; row + Max <= m; row += Max)
    f(count<Max>{}, row);
  with_count<Max - 1>(m - row, [&](auto n) { f(n, row); });
}

template <class S>
inline typename S::f32 load_scale(const packed_view& w, const unsigned char* base,
                                  std::int64_t vector) {
  return w.scales_f16
             ? S::load_f16(reinterpret_cast<const std::uint16_t*>(base) + vector * detail::lanes)
             : S::load(reinterpret_cast<const float*>(base) + vector * detail::lanes);
}

/// Writes one row's 16 sums: + bias, then + out when accumulating.
template <class S>
inline void finish(const tile& t, std::int64_t block, std::int64_t row, typename S::f32 sum) {
  const std::int64_t first = block * detail::lanes;
  const std::int64_t left = t.weights->rows - first;
  const int n = left < detail::lanes ? static_cast<int>(left) : static_cast<int>(detail::lanes);
  float* out = t.out + row * t.out_stride + first;
  if (t.bias != nullptr) sum = S::add(sum, S::load_n(t.bias + first, n));
  if (t.accumulate) sum = S::add(S::load_n(out, n), sum);
  S::store_n(out, sum, n);
}

// --- int8 compute ---------------------------------------------------------------------------

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

template <class S, bool U8, int Segment, bool Stored, int R>
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
    const typename S::f32 scale = load_scale<S>(w, scales, Stored ? 2 * g : g);
    typename S::f32 offset;
    if constexpr (Stored) offset = load_scale<S>(w, scales, 2 * g + 1);
    for (std::int64_t s = 0; s < segments; ++s) {
      typename S::codes codes[quads];
      at = load_segment<S, U8>(at, codes);
      typename S::i32 exact[R];
      for (int r = 0; r < R; ++r)
        exact[r] = S::set1_i32(Stored ? 0 : static_cast<std::int32_t>(terms[r * x.segments]));
      S::template dot<U8, R>(exact, codes, values, x.values_stride);
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

template <class S, bool U8, int Segment, bool Stored>
void tile_int8_of(const tile& t, const quantised_rows& x) {
  constexpr int rows = Segment == 32 ? S::int8_rows : 2;
  row_panels<rows>(t.m, [&](auto r, std::int64_t row) {
    for (std::int64_t b = t.first_block; b < t.end_block; ++b)
      int8_rows<S, U8, Segment, Stored, decltype(r)::value>(t, x, b, row);
  });
}

template <class S>
void tile_int8(const tile& t, const quantised_rows& x) {
  const packed_view& w = *t.weights;
  const auto pick = [&](auto u8, auto segment) {
    constexpr bool is_u8 = decltype(u8)::value != 0;
    constexpr int columns = decltype(segment)::value;
    w.offsets_stored ? tile_int8_of<S, is_u8, columns, true>(t, x)
                     : tile_int8_of<S, is_u8, columns, false>(t, x);
  };
  const bool u8 = w.kind == weight_kind::grouped_u8;
  if (w.segment == 32)
    u8 ? pick(count<1>{}, count<32>{}) : pick(count<0>{}, count<32>{});
  else
    u8 ? pick(count<1>{}, count<8>{}) : pick(count<0>{}, count<8>{});
}

/// 32 activations to int8 by their largest magnitude; the scale they carry.
template <class S>
inline float quantise_32(const float* x, std::int8_t* out) {
  const typename S::f32 a = S::load(x);
  const typename S::f32 b = S::load(x + 16);
  const float largest = S::largest(S::max(S::abs(a), S::abs(b)));
  // Below this the reciprocal overflows; such a group is zero for every purpose.
  const float inverse = largest > 1e-30F ? 127.0F / largest : 0.0F;
  S::store_i8(out, S::mul(a, S::set1(inverse)));
  S::store_i8(out + 16, S::mul(b, S::set1(inverse)));
  return largest > 1e-30F ? largest / 127.0F : 0.0F;
}

inline std::int32_t sum_of(const std::int8_t* q, std::int64_t n) {
  std::int32_t sum = 0;
  for (std::int64_t i = 0; i < n; ++i)
    sum += q[i];
  return sum;
}

template <class S>
void quantise(const packed_view& w, const float* x, const quantised_rows& out, std::int64_t row) {
  std::int8_t* q = out.values + row * out.values_stride;
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
    const float scale = quantise_32<S>(group, q + k);
    for (std::int64_t s = 0; s < n; s += w.segment) {
      const std::int32_t sum = w.segment == 32 ? S::sum_32(q + k) : sum_of(q + k + s, 8);
      *scales++ = scale;
      *terms++ = w.offsets_stored ? detail::f32_to_bits(scale * static_cast<float>(sum))
                                  : static_cast<std::uint32_t>(w.offset_factor * sum);
    }
  }
}

// --- decoding weights to f32 or bf16, 8 columns at a time ------------------------------------

template <class S>
struct dense_f32 {
  const float* at;
  dense_f32(const packed_view& w, std::int64_t block)
      : at(reinterpret_cast<const float*>(w.codes + block * w.codes_stride)) {}
  explicit dense_f32(const void* panel) : at(static_cast<const float*>(panel)) {}
  void next(typename S::f32 (&out)[8]) {
    for (int i = 0; i < 8; ++i)
      out[i] = S::load(at + i * 16);
    at += 8 * 16;
  }
};

template <class S>
struct dense_f16 {
  const std::uint16_t* at;
  dense_f16(const packed_view& w, std::int64_t block)
      : at(reinterpret_cast<const std::uint16_t*>(w.codes + block * w.codes_stride)) {}
  void next(typename S::f32 (&out)[8]) {
    for (int i = 0; i < 8; ++i)
      out[i] = S::load_f16(at + i * 16);
    at += 8 * 16;
  }
};

template <class S>
struct dense_bf16 {
  const std::uint16_t* at;
  dense_bf16(const packed_view& w, std::int64_t block)
      : at(reinterpret_cast<const std::uint16_t*>(w.codes + block * w.codes_stride)) {}
  explicit dense_bf16(const void* panel) : at(static_cast<const std::uint16_t*>(panel)) {}
  void next(typename S::f32 (&out)[8]) {
    for (int i = 0; i < 4; ++i) {
      const typename S::pairs p = S::load_pairs(at + i * 32);
      out[2 * i] = S::first_of(p);
      out[2 * i + 1] = S::second_of(p);
    }
    at += 8 * 16;
  }
  void next_pairs(typename S::pairs (&out)[4]) {
    for (int i = 0; i < 4; ++i)
      out[i] = S::load_pairs(at + i * 32);
    at += 8 * 16;
  }
};

/// scale * code + offset, in f32, for both grouped kinds.
template <class S, bool U8>
struct grouped {
  const packed_view* w;
  const unsigned char* at;
  const unsigned char* scales;
  std::int64_t group = 0;
  std::int64_t left = 0; ///< columns of this group still to come
  typename S::f32 scale, offset;

  grouped(const packed_view& view, std::int64_t block)
      : w(&view), at(view.codes + block * view.codes_stride),
        scales(view.scales + block * view.scales_stride), scale(S::zero()), offset(S::zero()) {}

  void next(typename S::f32 (&out)[8]) {
    if (left == 0) next_group();
    left -= 8;
    if constexpr (U8) {
      S::bytes_to_f32(S::load_codes(at), out);
      S::bytes_to_f32(S::load_codes(at + 64), out + 4);
      at += 128;
    } else {
      S::nibbles_to_f32(S::load_codes(at), out);
      at += 64;
    }
    for (int i = 0; i < 8; ++i)
      out[i] = S::fma(scale, out[i], offset);
  }

  void next_group() {
    left = w->group;
    if (w->offsets_stored) {
      scale = load_scale<S>(*w, scales, 2 * group);
      offset = load_scale<S>(*w, scales, 2 * group + 1);
    } else {
      scale = load_scale<S>(*w, scales, group);
      offset = S::mul(S::set1(static_cast<float>(w->offset_factor)), scale);
    }
    ++group;
  }
};

template <class S, class Decoder>
inline void decode_pairs(Decoder& decoder, typename S::pairs (&out)[4]) {
  if constexpr (requires { decoder.next_pairs(out); }) {
    decoder.next_pairs(out);
  } else {
    typename S::f32 wide[8];
    decoder.next(wide);
    for (int i = 0; i < 4; ++i)
      out[i] = S::round_pairs(wide[2 * i], wide[2 * i + 1]);
  }
}

// --- f32 compute ------------------------------------------------------------------------------

/// R rows times B blocks whose weights come from `decoders`.
template <class S, int R, int B, class Decoder>
inline void f32_block(const tile& t, const float* x, std::int64_t stride, std::int64_t block,
                      std::int64_t row, Decoder (&decoders)[B]) {
  const std::int64_t cols = t.weights->cols;
  const float* rows = x + row * stride;
  typename S::f32 sum[B][R];
  for (int b = 0; b < B; ++b)
    for (int r = 0; r < R; ++r)
      sum[b][r] = S::zero();
  std::int64_t k = 0;
  for (; k + 8 <= cols; k += 8)
    for (int b = 0; b < B; ++b) {
      typename S::f32 w[8];
      decoders[b].next(w);
      for (int i = 0; i < 8; ++i)
        for (int r = 0; r < R; ++r)
          sum[b][r] = S::fma(w[i], S::set1(rows[r * stride + k + i]), sum[b][r]);
    }
  if (k < cols)
    for (int b = 0; b < B; ++b) {
      typename S::f32 w[8];
      decoders[b].next(w);
      for (std::int64_t i = 0; k + i < cols; ++i)
        for (int r = 0; r < R; ++r)
          sum[b][r] = S::fma(w[i], S::set1(rows[r * stride + k + i]), sum[b][r]);
    }
  for (int b = 0; b < B; ++b)
    for (int r = 0; r < R; ++r)
      finish<S>(t, block + b, row + r, sum[b][r]);
}

template <class S, class Decoder>
void tile_f32_direct(const tile& t, const float* x, std::int64_t stride) {
  row_panels<direct_rows>(t.m, [&](auto r, std::int64_t row) {
    constexpr int rows = decltype(r)::value;
    std::int64_t b = t.first_block;
    // Few rows make few chains of dependent sums: several blocks at once hide their latency.
    if constexpr (rows == 1) {
      for (; b + 4 <= t.end_block; b += 4) {
        Decoder four[4] = {
            {*t.weights, b}, {*t.weights, b + 1}, {*t.weights, b + 2}, {*t.weights, b + 3}};
        f32_block<S, rows, 4>(t, x, stride, b, row, four);
      }
    } else {
      for (; b + 2 <= t.end_block; b += 2) {
        Decoder two[2] = {{*t.weights, b}, {*t.weights, b + 1}};
        f32_block<S, rows, 2>(t, x, stride, b, row, two);
      }
    }
    for (; b < t.end_block; ++b) {
      Decoder one[1] = {{*t.weights, b}};
      f32_block<S, rows, 1>(t, x, stride, b, row, one);
    }
  });
}

template <class S, class Decoder>
void tile_f32_of(const tile& t, const float* x, std::int64_t stride) {
  if (t.panel == nullptr) return tile_f32_direct<S, Decoder>(t, x, stride);
  for (std::int64_t b = t.first_block; b < t.end_block; ++b) {
    Decoder decoder(*t.weights, b);
    auto* to = static_cast<float*>(t.panel);
    for (std::int64_t k = 0; k < t.weights->padded_cols; k += 8, to += 8 * 16) {
      typename S::f32 w[8];
      decoder.next(w);
      for (int i = 0; i < 8; ++i)
        S::store(to + i * 16, w[i]);
    }
    row_panels<S::f32_rows>(t.m, [&](auto r, std::int64_t row) {
      dense_f32<S> one[1] = {dense_f32<S>(t.panel)};
      f32_block<S, decltype(r)::value, 1>(t, x, stride, b, row, one);
    });
  }
}

template <class S>
void tile_f32(const tile& t, const float* x, std::int64_t stride) {
  switch (t.weights->kind) {
  case weight_kind::f32:
    return tile_f32_of<S, dense_f32<S>>(t, x, stride);
  case weight_kind::f16:
    return tile_f32_of<S, dense_f16<S>>(t, x, stride);
  case weight_kind::bf16:
    return tile_f32_of<S, dense_bf16<S>>(t, x, stride);
  case weight_kind::grouped_u4:
    return tile_f32_of<S, grouped<S, false>>(t, x, stride);
  case weight_kind::grouped_u8:
    return tile_f32_of<S, grouped<S, true>>(t, x, stride);
  }
}

// --- bf16 compute -----------------------------------------------------------------------------

template <class S, int R, int B, class Decoder>
inline void bf16_block(const tile& t, const bf16_rows& x, std::int64_t block, std::int64_t row,
                       Decoder (&decoders)[B]) {
  const std::int64_t stride = x.values_stride;
  const std::uint16_t* rows = x.values + row * stride;
  typename S::f32 sum[B][R];
  for (int b = 0; b < B; ++b)
    for (int r = 0; r < R; ++r)
      sum[b][r] = S::zero();
  for (std::int64_t k = 0; k < t.weights->padded_cols; k += 8)
    for (int b = 0; b < B; ++b) {
      typename S::pairs w[4];
      decode_pairs<S>(decoders[b], w);
      for (int i = 0; i < 4; ++i)
        for (int r = 0; r < R; ++r)
          sum[b][r] = S::dot_pairs(sum[b][r], w[i], rows + r * stride + k + 2 * i);
    }
  for (int b = 0; b < B; ++b)
    for (int r = 0; r < R; ++r)
      finish<S>(t, block + b, row + r, sum[b][r]);
}

template <class S, class Decoder>
void tile_bf16_direct(const tile& t, const bf16_rows& x) {
  row_panels<direct_rows>(t.m, [&](auto r, std::int64_t row) {
    constexpr int rows = decltype(r)::value;
    std::int64_t b = t.first_block;
    if constexpr (rows == 1) {
      for (; b + 4 <= t.end_block; b += 4) {
        Decoder four[4] = {
            {*t.weights, b}, {*t.weights, b + 1}, {*t.weights, b + 2}, {*t.weights, b + 3}};
        bf16_block<S, rows, 4>(t, x, b, row, four);
      }
    } else {
      for (; b + 2 <= t.end_block; b += 2) {
        Decoder two[2] = {{*t.weights, b}, {*t.weights, b + 1}};
        bf16_block<S, rows, 2>(t, x, b, row, two);
      }
    }
    for (; b < t.end_block; ++b) {
      Decoder one[1] = {{*t.weights, b}};
      bf16_block<S, rows, 1>(t, x, b, row, one);
    }
  });
}

template <class S, class Decoder>
void tile_bf16_of(const tile& t, const bf16_rows& x) {
  if (t.panel == nullptr) return tile_bf16_direct<S, Decoder>(t, x);
  for (std::int64_t b = t.first_block; b < t.end_block; ++b) {
    Decoder decoder(*t.weights, b);
    auto* to = static_cast<std::uint16_t*>(t.panel);
    for (std::int64_t k = 0; k < t.weights->padded_cols; k += 8, to += 8 * 16) {
      typename S::pairs w[4];
      decode_pairs<S>(decoder, w);
      for (int i = 0; i < 4; ++i)
        S::store_pairs(to + i * 32, w[i]);
    }
    row_panels<S::bf16_rows>(t.m, [&](auto r, std::int64_t row) {
      dense_bf16<S> one[1] = {dense_bf16<S>(t.panel)};
      bf16_block<S, decltype(r)::value, 1>(t, x, b, row, one);
    });
  }
}

template <class S>
void tile_bf16(const tile& t, const bf16_rows& x) {
  switch (t.weights->kind) {
  case weight_kind::f32:
    return tile_bf16_of<S, dense_f32<S>>(t, x);
  case weight_kind::f16:
    return tile_bf16_of<S, dense_f16<S>>(t, x);
  case weight_kind::bf16:
    return tile_bf16_of<S, dense_bf16<S>>(t, x);
  case weight_kind::grouped_u4:
    return tile_bf16_of<S, grouped<S, false>>(t, x);
  case weight_kind::grouped_u8:
    return tile_bf16_of<S, grouped<S, true>>(t, x);
  }
}

void round_bf16(const packed_view& w, const float* x, const bf16_rows& out, std::int64_t row) {
  std::uint16_t* to = out.values + row * out.values_stride;
  for (std::int64_t k = 0; k < w.cols; ++k)
    to[k] = detail::f32_to_bf16(x[k]);
  for (std::int64_t k = w.cols; k < w.padded_cols; ++k)
    to[k] = 0;
}

template <class S>
constexpr kernels make_kernels() {
  return {quantise<S>, round_bf16, tile_int8<S>, tile_bf16<S>, tile_f32<S>};
}

} // namespace
} // namespace twill::gpu::host
