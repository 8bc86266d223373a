// The micro-kernels of linear layers for f32 and bf16 compute, as templates over a SIMD policy
// (simd_*.hpp), for every kind of weights.
//
// With few rows, weights are decoded while they are multiplied. With many rows, each row panel (16
// outputs) is first decoded into tile::pack and then used for all rows.
#pragma once

#include "gpu/linear/host/tile_common.hpp"

namespace twill::gpu::host {
namespace {

// --- decoding weights to f32 or bf16, 8 columns at a time ------------------------------------

template <class S>
struct dense_f32 {
  const float* at;
  dense_f32(const packed_view& w, std::int64_t panel)
      : at(reinterpret_cast<const float*>(w.codes + panel * w.codes_stride)) {}
  explicit dense_f32(const void* decoded) : at(static_cast<const float*>(decoded)) {}
  void next(typename S::f32 (&out)[8]) {
    for (int i = 0; i < 8; ++i) {
      ask_for(at + i * 16 + codes_ahead / 4);
      out[i] = S::load(at + i * 16);
    }
    at += 8 * 16;
  }
};

template <class S>
struct dense_f16 {
  const std::uint16_t* at;
  dense_f16(const packed_view& w, std::int64_t panel)
      : at(reinterpret_cast<const std::uint16_t*>(w.codes + panel * w.codes_stride)) {}
  void next(typename S::f32 (&out)[8]) {
    for (int i = 0; i < 8; ++i) {
      if (i % 2 == 0) ask_for(at + i * 16 + codes_ahead / 2);
      out[i] = S::load_f16(at + i * 16);
    }
    at += 8 * 16;
  }
};

template <class S>
struct dense_bf16 {
  const std::uint16_t* at;
  dense_bf16(const packed_view& w, std::int64_t panel)
      : at(reinterpret_cast<const std::uint16_t*>(w.codes + panel * w.codes_stride)) {}
  explicit dense_bf16(const void* decoded) : at(static_cast<const std::uint16_t*>(decoded)) {}
  void next(typename S::f32 (&out)[8]) {
    for (int i = 0; i < 4; ++i) {
      ask_for(at + i * 32 + codes_ahead / 2);
      const typename S::pairs p = S::load_pairs(at + i * 32);
      out[2 * i] = S::first_of(p);
      out[2 * i + 1] = S::second_of(p);
    }
    at += 8 * 16;
  }
  void next_pairs(typename S::pairs (&out)[4]) {
    for (int i = 0; i < 4; ++i) {
      ask_for(at + i * 32 + codes_ahead / 2);
      out[i] = S::load_pairs(at + i * 32);
    }
    at += 8 * 16;
  }
};

/// Decodes both grouped kinds to scale * code + offset in f32.
template <class S, bool U8>
struct grouped {
  const packed_view* w;
  const unsigned char* at;
  const unsigned char* scales;
  std::int64_t left = 0; ///< columns of this group still to come
  typename S::f32 scale, offset;

  grouped(const packed_view& view, std::int64_t panel)
      : w(&view), at(view.codes + panel * view.codes_stride),
        scales(view.scales + panel * view.scales_stride), scale(S::zero()), offset(S::zero()) {}

  void next(typename S::f32 (&out)[8]) {
    if (left == 0) next_group();
    left -= 8;
    ask_for(at + codes_ahead);
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
    scale = load_scale<S>(*w, scales);
    offset = w->offsets_stored ? load_offset<S>(*w, scales, scale)
                               : S::mul(S::set1(static_cast<float>(w->offset_factor)), scale);
    scales += w->params_stride;
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

/// R rows times B row panels whose weights come from `decoders`.
template <class S, int R, int B, class Decoder>
inline void f32_panels(const tile& t, const float* x, std::int64_t stride, std::int64_t panel,
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
      finish<S>(t, panel + b, out_of(t, panel + b, row + r), sum[b][r]);
}

template <class S, class Decoder>
void tile_f32_direct(const tile& t, const float* x, std::int64_t stride) {
  for_row_groups<float_gemv_rows>(t.m, [&](auto r, std::int64_t row) {
    constexpr int rows = decltype(r)::value;
    std::int64_t b = t.first_panel;
    // A single row gives few independent sums; computing several row panels (16 outputs each) at
    // once hides the latency of the additions.
    if constexpr (rows == 1) {
      for (; b + 4 <= t.end_panel; b += 4) {
        Decoder four[4] = {
            {*t.weights, b}, {*t.weights, b + 1}, {*t.weights, b + 2}, {*t.weights, b + 3}};
        f32_panels<S, rows, 4>(t, x, stride, b, row, four);
      }
    } else {
      for (; b + 2 <= t.end_panel; b += 2) {
        Decoder two[2] = {{*t.weights, b}, {*t.weights, b + 1}};
        f32_panels<S, rows, 2>(t, x, stride, b, row, two);
      }
    }
    for (; b < t.end_panel; ++b) {
      Decoder one[1] = {{*t.weights, b}};
      f32_panels<S, rows, 1>(t, x, stride, b, row, one);
    }
  });
}

template <class S, class Decoder>
void tile_f32_of(const tile& t, const float* x, std::int64_t stride) {
  if (t.pack == nullptr) return tile_f32_direct<S, Decoder>(t, x, stride);
  for (std::int64_t b = t.first_panel; b < t.end_panel; ++b) {
    Decoder decoder(*t.weights, b);
    auto* to = static_cast<float*>(t.pack);
    for (std::int64_t k = 0; k < t.weights->padded_cols; k += 8, to += 8 * 16) {
      typename S::f32 w[8];
      decoder.next(w);
      for (int i = 0; i < 8; ++i)
        S::store(to + i * 16, w[i]);
    }
    for_row_groups<S::f32_rows>(t.m, [&](auto r, std::int64_t row) {
      dense_f32<S> one[1] = {dense_f32<S>(t.pack)};
      f32_panels<S, decltype(r)::value, 1>(t, x, stride, b, row, one);
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
  case weight_kind::grouped_u4_as_u8:
    break; // see supports() of linear_host.cpp
  }
}

// --- bf16 compute -----------------------------------------------------------------------------

template <class S, int R, int B, class Decoder>
inline void bf16_panels(const tile& t, const bf16_rows& x, std::int64_t panel, std::int64_t row,
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
      finish<S>(t, panel + b, out_of(t, panel + b, row + r), sum[b][r]);
}

template <class S, class Decoder>
void tile_bf16_direct(const tile& t, const bf16_rows& x) {
  for_row_groups<float_gemv_rows>(t.m, [&](auto r, std::int64_t row) {
    constexpr int rows = decltype(r)::value;
    std::int64_t b = t.first_panel;
    if constexpr (rows == 1) {
      for (; b + 4 <= t.end_panel; b += 4) {
        Decoder four[4] = {
            {*t.weights, b}, {*t.weights, b + 1}, {*t.weights, b + 2}, {*t.weights, b + 3}};
        bf16_panels<S, rows, 4>(t, x, b, row, four);
      }
    } else {
      for (; b + 2 <= t.end_panel; b += 2) {
        Decoder two[2] = {{*t.weights, b}, {*t.weights, b + 1}};
        bf16_panels<S, rows, 2>(t, x, b, row, two);
      }
    }
    for (; b < t.end_panel; ++b) {
      Decoder one[1] = {{*t.weights, b}};
      bf16_panels<S, rows, 1>(t, x, b, row, one);
    }
  });
}

template <class S, class Decoder>
void tile_bf16_of(const tile& t, const bf16_rows& x) {
  if (t.pack == nullptr) return tile_bf16_direct<S, Decoder>(t, x);
  for (std::int64_t b = t.first_panel; b < t.end_panel; ++b) {
    Decoder decoder(*t.weights, b);
    auto* to = static_cast<std::uint16_t*>(t.pack);
    for (std::int64_t k = 0; k < t.weights->padded_cols; k += 8, to += 8 * 16) {
      typename S::pairs w[4];
      decode_pairs<S>(decoder, w);
      for (int i = 0; i < 4; ++i)
        S::store_pairs(to + i * 32, w[i]);
    }
    for_row_groups<S::bf16_rows>(t.m, [&](auto r, std::int64_t row) {
      dense_bf16<S> one[1] = {dense_bf16<S>(t.pack)};
      bf16_panels<S, decltype(r)::value, 1>(t, x, b, row, one);
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
  case weight_kind::grouped_u4_as_u8:
    break;
  }
}

inline void round_bf16(const packed_view& w, const float* x, const bf16_rows& out,
                       std::int64_t row) {
  std::uint16_t* to = out.values + row * out.values_stride;
  for (std::int64_t k = 0; k < w.cols; ++k)
    to[k] = detail::f32_to_bf16(x[k]);
  for (std::int64_t k = w.cols; k < w.padded_cols; ++k)
    to[k] = 0;
}

} // namespace
} // namespace twill::gpu::host
