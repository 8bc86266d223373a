// Unpacks weights for the GEMM of int8 compute. A stretch, which is up to int8_gemm_columns columns
// of two row panels (16 outputs each), is unpacked once for many rows and stays in the first-level
// cache. The codes of grouped_u8 need no unpacking and are read in place.
#pragma once

#include "gpu/linear/host/int8_gemv.hpp"

namespace twill::gpu::host {
namespace {

/// The micro-kernel multiplies at most microkernel_rows rows by microkernel_panels row panels (16
/// outputs each). Their 12 integer and 12 float sums fill 24 of the 32 vector registers.
constexpr int microkernel_rows = 6;
/// The least number of rows that the micro-kernel multiplies. A tile has at least 8 rows; divided
/// evenly into groups of at most microkernel_rows, the rows never give a smaller group.
constexpr int microkernel_least_rows = 4;
constexpr int microkernel_panels = 2;
static_assert(microkernel_rows == int8_gemm_rows && microkernel_panels == int8_gemm_panels);
static_assert(int8_gemm_max_rows % microkernel_rows == 0);

/// The bits of the float 1.5 * 2^23. Adding a small integer to the bits adds the integer to the
/// float.
constexpr std::int32_t float_bias_bits = 0x4b400000;
constexpr float float_bias = 12582912.0F;

/// How a segment's integer sum becomes a float: see add_segment().
enum class conversion {
  fused,    ///< stored offsets and f16 scales: the multiplication by the scale also converts
  stored,   ///< stored offsets: a separate instruction converts
  factored, ///< the offset is part of the integer sum
  int16,    ///< int16 quant params: the row's scale is applied after the last column
};

template <conversion How>
struct conversion_of {
  static constexpr conversion value = How;
};

/// The scales and offsets that apply to one segment of a row panel (packed_view.hpp explains both).
/// They are floats; with int16 quant params they are `words`, 16 pairs of 16-bit integers.
struct alignas(64) pack_params {
  union {
    float scale[16];
    unsigned char words[64];
  };
  float minus_bias[16]; ///< -float_bias * scale
  float offset[16];
};

/// The buffer that weights are unpacked into; each compute thread has one.
struct alignas(64) int8_pack {
  unsigned char codes[microkernel_panels][int8_gemm_columns / 4][64]; ///< unpacked
  pack_params params[int8_gemm_columns / 16][microkernel_panels];     ///< by segment
  float sums[int8_gemm_max_rows][microkernel_panels]
            [16]; ///< kept from one stretch of columns to the next
};
static_assert(sizeof(int8_pack) == int8_pack_bytes);

/// A stretch, the columns that are multiplied in one pass: segments (packed_view.hpp) [first, first
/// + count) of row panel `panel` and, where `panels` is 2, of row panel `panel` + `apart`.
struct pack_stretch {
  std::int64_t first, count;
  bool begins, ends; ///< whether this is the first stretch of the columns, or the last
  std::int64_t panel, apart;
  int panels;
  const unsigned char* codes[microkernel_panels]; ///< unpacked codes
  const float* row_scales[microkernel_panels];    ///< with int16 quant params
};

/// Unpacks one row panel's part of a stretch (the columns that are multiplied in one pass) into
/// `pack`, and points `stretch` at its codes. `side` is 0 for the first row panel of the stretch
/// and 1 for the second.
template <class S, code_form F, int Segment>
void pack_panel(const packed_view& w, std::int64_t panel, int side, pack_stretch& stretch,
                int8_pack& pack) {
  constexpr int quads = Segment / 4;
  constexpr bool as_they_are = F == code_form::u8;
  const std::int64_t per_group = w.group / Segment;
  const unsigned char* at =
      w.codes + panel * w.codes_stride + stretch.first * (as_they_are ? quads * 64 : quads * 32);
  stretch.codes[side] = as_they_are ? at : pack.codes[side][0];
  const unsigned char* of_panel = w.scales + panel * w.scales_stride;
  stretch.row_scales[side] = reinterpret_cast<const float*>(of_panel);
  const unsigned char* params = of_panel + (w.int16_quant_params ? detail::row_scale_bytes : 0) +
                                stretch.first / per_group * w.params_stride;
  std::int64_t left_of_group = per_group - stretch.first % per_group;
  line_walk lines(w);
  if constexpr (F == code_form::u4_as_u8) lines.begin_group(params, stretch.first % per_group);
  for (std::int64_t s = 0; s < stretch.count; ++s) {
    if constexpr (!as_they_are) {
      typename S::codes codes[quads];
      const unsigned char* line = F == code_form::u4_as_u8 ? lines.next() : nullptr;
      at = load_segment<S, F>(at, line, codes);
      for (int q = 0; q < quads; ++q)
        S::store_codes(pack.codes[side][s * quads + q], codes[q]);
    }
    pack_params& out = pack.params[s][side];
    if (w.int16_quant_params) {
      S::store_codes(out.words, S::load_codes(params));
      params += w.params_stride;
      ask_for(params + scales_ahead);
      continue;
    }
    const typename S::f32 scale = load_scale<S>(w, params);
    S::store(out.scale, scale);
    S::store(out.minus_bias, S::mul(scale, S::set1(-float_bias)));
    if (w.offsets_stored) S::store(out.offset, load_offset<S>(w, params, scale));
    if (--left_of_group > 0) continue;
    left_of_group = per_group;
    params += w.params_stride;
    ask_for(params + scales_ahead);
    if constexpr (F == code_form::u4_as_u8) lines.begin_group(params);
  }
}

} // namespace
} // namespace twill::gpu::host
