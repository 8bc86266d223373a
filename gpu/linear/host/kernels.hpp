// kernels: the host micro-kernels of linear layers, one table per instruction set.
//
// A tile is a range of 16-row blocks of the weights times some rows of activations; every output is
// summed by one lane over ascending columns, whatever the tile, so tiles may be cut anywhere. The
// functions are pure: they touch only what their arguments point at, from any thread.
#pragma once

#include <cstdint>

#include "gpu/detail/packed_view.hpp"
#include "gpu/host/isa.hpp"

namespace twill::gpu::host {

/// One segment of a row of activations. `term` is the offset's part: float scale * sum(q) where
/// offsets are stored (where offsets are applied once a group: summed from the group's first
/// segment on), integer_begin(sum(q)) where terms are integers, else int32 offset_factor * sum(q).
struct segment_terms {
  float scale;
  std::uint32_t term;
};

/// Activations of int8 and int8x2 compute.
struct quantised_rows {
  std::int8_t* values = nullptr;  // (m, values_stride); int8x2: the high digits
  segment_terms* terms = nullptr; // (m, segments)
  std::int64_t values_stride = 0;
  std::int64_t segments = 0;
  /// int8x2: from a row's high digits and their terms, which are int8's, to its low digits and
  /// theirs, which are the same of what is left; else 0.
  std::int64_t low_digits = 0, low_terms = 0;
  std::uint8_t* fine = nullptr; // int8x2: (m, segments) 1 where low digits count, else they are 0
};

/// Activations of bf16 compute.
struct bf16_rows {
  std::uint16_t* values = nullptr; // (m, values_stride), zero past cols
  std::int64_t values_stride = 0;
};

struct tile {
  const detail::packed_view* weights = nullptr;
  std::int64_t first_block = 0;
  std::int64_t end_block = 0;
  std::int64_t m = 0;
  float* out = nullptr; // (m, rows), the tile's first row
  std::int64_t out_stride = 0;
  const float* bias = nullptr; // (rows) or null
  bool accumulate = false;
  /// int8, where kernels.gates: blocks from a gate's to the one it multiplies, and out is
  /// silu_mul() of the two. The tile's blocks are gates'; no bias, not accumulated. 0: none.
  std::int64_t gate_blocks = 0;
  /// Many rows: room to unpack weights once for all of them, 64-byte aligned, or null. Floats:
  /// padded_cols * 64 bytes, a block; int8: int8_panel_bytes.
  void* panel = nullptr;
};

struct kernels {
  void (*quantise)(const detail::packed_view& w, const float* x, const quantised_rows& out,
                   std::int64_t row);
  void (*round_bf16)(const detail::packed_view& w, const float* x, const bf16_rows& out,
                     std::int64_t row);
  void (*tile_int8)(const tile& t, const quantised_rows& x); ///< grouped kinds; int8, int8x2
  void (*tile_bf16)(const tile& t, const bf16_rows& x);
  void (*tile_f32)(const tile& t, const float* x, std::int64_t x_stride);
  /// Multiply-adds in registers: see peak_tiles.hpp.
  std::int64_t (*spin)(compute_type type, std::int64_t rounds, float* sink);
  bool gates; ///< tile_int8 takes gate_blocks
};

/// Rows up to which unpacking a panel of floats does not pay.
inline constexpr std::int64_t direct_rows = 4;
/// The same for int8, as this processor has it; results are the same bits. At least 8, since panels
/// take no tile of less than 8 rows.
std::int64_t int8_direct_rows(weight_kind kind);

/// An int8 panel: that many columns of two blocks with their terms, and that many rows' sums.
inline constexpr std::int64_t int8_panel_columns = 576;
inline constexpr std::int64_t int8_panel_blocks = 2;
inline constexpr std::int64_t int8_panel_rows = 6; ///< multiplied at a time
inline constexpr std::int64_t int8_panel_max_rows = 264;
inline constexpr std::int64_t int8_panel_bytes =
    int8_panel_columns / 4 * int8_panel_blocks * 64 +
    int8_panel_columns / 16 * int8_panel_blocks * 3 * 64 +
    int8_panel_max_rows * int8_panel_blocks * 64;

extern const kernels plain_kernels;
#ifdef TWILL_X86
extern const kernels avx2_kernels;
extern const kernels avx512_kernels;
extern const kernels avx512_vnni_kernels;
extern const kernels avx512_bf16_kernels;
#endif

const kernels& kernels_for(isa level);

} // namespace twill::gpu::host
