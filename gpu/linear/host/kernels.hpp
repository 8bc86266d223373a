// kernels: the host micro-kernels of linear layers, one table per instruction set.
//
// A tile is a range of row panels (16 rows of the weights) times some rows of activations. One SIMD
// lane sums every output over ascending columns, so a matrix may be divided into tiles anywhere
// without changing a bit of the result. The functions are pure: they access only the memory that
// their arguments point to. Any thread may call them.
#pragma once

#include <cstdint>

#include "gpu/detail/packed_view.hpp"
#include "gpu/host/isa.hpp"

namespace twill::gpu::host {

/// The quantisation parameters of one segment of a row of activations, whose codes are q.
struct segment_params {
  float scale;
  /// How the offsets of the weights apply to this segment (columns whose products are summed before
  /// scales apply), in which the activations have the codes q. Where offsets are stored as floats
  /// or as zero points, the field holds the bits of the float scale * sum(q), by which the offset
  /// is multiplied; where offsets are applied once per group, it holds the bits of the total of
  /// these floats over the group's segments up to this one. In all other matrices the field is the
  /// start value of the segment's integer sum: int16_start(sum(q)) with int16 quant params, else
  /// offset_factor * sum(q).
  std::uint32_t offset;
};

/// Activations of int8 and int8x2 compute. int8x2 has a second set of codes and params for the
/// residual, the error of rounding to the first codes.
struct quantised_rows {
  std::int8_t* values = nullptr;    // (m, values_stride) codes
  segment_params* params = nullptr; // (m, segments)
  std::int64_t values_stride = 0;
  std::int64_t segments = 0;
  /// int8x2: the distance from a row's codes to the codes of its residual (rounding error), and
  /// from its params to those of the residual. Zero where there is no residual.
  std::int64_t residual_values = 0, residual_params = 0;
  /// int8x2: has one flag for each row and segment of columns, (m, segments). The flag is 1 where
  /// the segment's products include the residual (the rounding error); where it is 0, the residual
  /// codes are zero.
  std::uint8_t* has_residual = nullptr;
};

/// Activations of bf16 compute.
struct bf16_rows {
  std::uint16_t* values = nullptr; // (m, values_stride), zero past cols
  std::int64_t values_stride = 0;
};

struct tile {
  const detail::packed_view* weights = nullptr;
  std::int64_t first_panel = 0;
  std::int64_t end_panel = 0;
  std::int64_t m = 0;
  float* out = nullptr; // (m, rows), the tile's first row
  std::int64_t out_stride = 0;
  const float* bias = nullptr; // (rows) or null
  bool accumulate = false;
  /// Not 0 for gated layers, which only int8 kernels with kernels.gates support: the distance in
  /// row panels (16 rows of weights) from a gate's panel to the panel that the gate multiplies. The
  /// tile's panels are then panels of the gate, `out` receives silu_mul() of both, and there is
  /// neither bias nor accumulation. 0: the layer has no gate.
  std::int64_t gate_panels = 0;
  /// A 64-byte aligned buffer into which weights are unpacked once for all rows of the tile; null
  /// where there are too few rows for that. f32 and bf16 need padded_cols * 64 bytes, int8 needs
  /// int8_pack_bytes.
  void* pack = nullptr;
};

struct kernels {
  void (*quantise)(const detail::packed_view& w, const float* x, const quantised_rows& out,
                   std::int64_t row);
  void (*round_bf16)(const detail::packed_view& w, const float* x, const bf16_rows& out,
                     std::int64_t row);
  void (*tile_int8)(const tile& t, const quantised_rows& x); ///< grouped kinds; int8, int8x2
  void (*tile_bf16)(const tile& t, const bf16_rows& x);
  void (*tile_f32)(const tile& t, const float* x, std::int64_t x_stride);
  /// Runs multiply-adds in registers: see peak_tiles.hpp.
  std::int64_t (*spin)(compute_type type, std::int64_t rounds, float* sink);
  bool gates; ///< whether tile_int8 supports gate_panels
};

/// The most rows for which f32 and bf16 kernels decode weights while they multiply instead of
/// unpacking them first.
inline constexpr std::int64_t float_gemv_rows = 4;
/// The most rows for which int8 uses its GEMV kernel on this processor; the GEMM kernel gives the
/// same bits. At least 8, because the GEMM kernel does not support tiles of fewer than 8 rows.
std::int64_t int8_gemv_rows(weight_kind kind);

/// The int8 GEMM kernel unpacks this many columns of this many row panels at a time.
inline constexpr std::int64_t int8_gemm_columns = 576;
inline constexpr std::int64_t int8_gemm_panels = 2;
/// The int8 GEMM kernel multiplies this many rows at a time by the unpacked columns, and a tile has
/// at most int8_gemm_max_rows rows.
inline constexpr std::int64_t int8_gemm_rows = 6;
inline constexpr std::int64_t int8_gemm_max_rows = 264;
/// Bytes of an int8_pack: the codes, their params and the rows' sums.
inline constexpr std::int64_t int8_pack_bytes = int8_gemm_columns / 4 * int8_gemm_panels * 64 +
                                                int8_gemm_columns / 16 * int8_gemm_panels * 3 * 64 +
                                                int8_gemm_max_rows * int8_gemm_panels * 64;

extern const kernels plain_kernels;
#ifdef TWILL_X86
extern const kernels avx2_kernels;
extern const kernels avx512_kernels;
/// The tables for AVX-512 VNNI and for AVX-512 BF16 hold only the kernels that use the new
/// instructions. kernels_for() takes the other kernels from the table of the narrower level, so
/// that they are compiled once.
extern const kernels avx512_vnni_kernels;
extern const kernels avx512_bf16_kernels;
#endif

const kernels& kernels_for(isa level);

} // namespace twill::gpu::host
