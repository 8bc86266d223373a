// plans: the constants of twill's CUDA kernels that the model on paper (model.hpp) counts with. The
// data is constant.
//
// To correct the model, change the constants here. Instruction and register counts come from
// `tools/check-cuda`, which reads them from the machine code. The shapes of thread blocks come from
// gpu/linear/cuda and gpu/attention/cuda. Figures that are guesses or assumptions are marked as
// such.
#pragma once

#include <array>
#include <cstdint>

#include "gpu/linear/weight_kind.hpp"

namespace twill::bench::paper {

/// How the weights of a matrix are stored.
struct weight_format {
  int bits;           ///< 4, 8 or 16
  std::int32_t group; ///< columns that share a scale and a zero point; 0 with 16 bits
  bool int8 = false;  ///< true: activations are int8; false: they have 16 bits
};

/// The kernel that multiplies weights with few rows of activations. It has variants for up to 8, 16
/// and 32 rows per thread block.
struct gemm_plan {
  const char* name;
  weight_format weights;
  /// Columns between two scalings; every slice of the columns holds whole segments.
  std::int32_t segment;
  int group_bytes; ///< bytes of the scale and the zero point of one group
  /// How many instructions a thread executes for each weight that it handles, for 8, 16 and 32
  /// rows. A warp instruction is executed by 32 threads at once, so a weight takes 1/32 as many
  /// warp instructions.
  std::array<double, 3> instructions;
  /// Registers of a thread for 8, 16 and 32 rows with 32 outputs per thread block, and for 32 rows
  /// with 64 outputs.
  std::array<int, 4> registers;
};

// Instruction counts of the whole loop, as tools/check-cuda counts them for sm_80. After every
// `segment` columns the kernel multiplies its sums by the scales. With 32 rows and groups of 128 or
// 64, the counted inner loop does not contain this scaling. Therefore 0.5 (groups of 128), 1
// (groups of 64) and, with int8 activations, 0.8 were added.
inline constexpr gemm_plan gemm_plans[] = {
    {"gemm_w4/128", {4, 128}, 128, 3, {2.33, 2.56, 3.56}, {72, 118, 128, 168}},
    {"gemm_w4/64", {4, 64}, 64, 3, {2.77, 3.08, 4.09}, {64, 96, 128, 168}},
    {"gemm_w4/32", {4, 32}, 32, 3, {3.84, 4.75, 6.34}, {68, 90, 128, 178}},
    {"gemm_w8/64", {8, 64}, 64, 3, {2.33, 2.64, 3.66}, {61, 87, 128, 162}},
    {"gemm_w8/32", {8, 32}, 32, 2, {3.19, 3.75, 4.81}, {54, 76, 125, 159}}, // Q8_0
    {"gemm_w8/16", {8, 16}, 32, 4, {3.78, 4.53, 6.03}, {66, 98, 128, 178}}, // Q6_K
    {"gemm_i8/128", {8, 128, true}, 128, 2, {1.24, 1.64, 2.62}, {78, 104, 163, 163}},
    {"gemm_16", {16, 0}, 32, 0, {1.38, 1.62, 2.38}, {52, 70, 96, 124}},
};

/// The most rows of a thread block, for each variant of the kernel.
inline constexpr std::array<int, 3> gemm_rows = {8, 16, 32};
/// When the matrix has at least this many outputs, thread blocks with more than 16 rows compute 64
/// outputs instead of 32. The 64 outputs are two pairs of panels; a panel is 16 outputs, see
/// gpu/linear/cuda/gemm.hpp.
inline constexpr int gemm_outputs_for_two_pairs = 16384;
inline constexpr int gemm_outputs = 32; ///< of one pair of panels
/// Slices that the columns are cut into; each warp of a block computes one.
inline constexpr int gemm_slices = 8;
inline constexpr int gemm_bytes_in_flight = 48 * 1024; ///< of a block, in shared memory
inline constexpr double gemm_end_s = 0.5e-6;           ///< adding up the slices. Assumption
/// The share of the card's mma rate that this kernel's mma instructions reach. Derived from Marlin
/// (marlin.hpp), whose rate for large batches levels off at 141 of 312 TFLOP/s.
inline constexpr double gemm_tensor_share = 0.45;

/// The kernel that multiplies packed weights with the rows of a prompt, in the larger of its two
/// block shapes: each multiprocessor runs one block of eight warps at a time.
struct prefill_plan {
  weight_format weights;
  int outputs, rows;   ///< of a block
  double instructions; ///< warp instructions per mma: the whole inner loop, as counted for sm_80
};
/// An mma of int8 multiplies twice as many columns as an mma of 16-bit values in the same time.
inline constexpr prefill_plan prefill_plans[] = {
    {{4, 128}, 256, 64, 4.3}, {{4, 64}, 256, 64, 5.77},        {{4, 32}, 256, 64, 7.62},
    {{8, 64}, 256, 48, 6.29}, {{8, 32}, 256, 48, 8.33},        {{8, 16}, 256, 48, 10.67},
    {{16, 0}, 128, 128, 3.1}, {{8, 128, true}, 256, 48, 8.46},
};
/// The share of the card's mma rate that this kernel reaches. Assumption: each step over 32 columns
/// waits at a barrier. A scheduler of the multiprocessor has only two warps, so while one waits the
/// other seldom has enough instructions to keep the tensor cores busy.
inline constexpr double prefill_tensor_share = 0.75;

// Decode attention over 16-bit KV with head_dim 128 and up to 8 query heads per KV head. In the
// machine code for sm_80, a chunk of 131,072 bytes of KV takes about 9,500 warp instructions, and
// the start of a thread block takes 2,000. attention_first_loads and attention_end_s are guesses.
inline constexpr int attention_chunk = 256; ///< positions
inline constexpr int attention_tile_heads = 8;
/// Up to about this many blocks, every chunk has a block of its own.
inline constexpr std::int64_t attention_enough_blocks = 2048;
inline constexpr int attention_warps = 4; ///< of a block
inline constexpr int attention_registers = 128;
inline constexpr int attention_shared_bytes = 46176; ///< of a block
/// Bytes in flight of a block: three of its four buffer slots.
inline constexpr int attention_bytes_in_flight = 24 * 1024;
/// Warp instructions per 32 bytes of KV.
inline constexpr double attention_instructions = 2.8;
/// Loads that wait for each other: length, block table, keys.
inline constexpr int attention_first_loads = 3;
inline constexpr double attention_end_s = 0.5e-6;
inline constexpr double combine_s = 2e-6; ///< the whole launch that adds up the chunks

// Attention of a prompt's rows over 16-bit KV with head_dim 128. In the machine code for sm_80, a
// warp takes about 3,900 instructions for a chunk of 256 positions. They include 512 mma
// instructions. The 16 rows of an mma are eight query rows in two parts each, because the f32
// factor of a product (queries or softmax weights) is split into two 16-bit parts.
inline constexpr int prefill_attention_rows = 48; ///< pairs of a row and a query head in a block
inline constexpr int prefill_attention_warps = 6; ///< of a block
inline constexpr int prefill_attention_registers = 168;
inline constexpr int prefill_attention_shared_bytes = 49 * 1024; ///< of a block
inline constexpr double prefill_attention_instructions = 7.6;    ///< warp instructions per mma

// Kernels that work on one row at a time: norms, rope with the store of KV, activation, embedding,
// choice of tokens.
inline constexpr int row_warps = 8; ///< of a block
inline constexpr int row_registers = 40;
inline constexpr double row_instructions = 0.25; ///< warp instructions per 32 bytes. Guess
inline constexpr double row_end_s = 0.3e-6;      ///< a reduction over the block. Guess
inline constexpr int rounding_columns = 1024;    ///< columns of a row that one block rounds to int8
/// Blocks per row of logits; a second launch merges their choices.
inline constexpr int choice_blocks = 16;

} // namespace twill::bench::paper
