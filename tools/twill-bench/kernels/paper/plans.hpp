// plans: the constants of twill's CUDA kernels that the model on paper counts with. Constant data.
//
// This is the one place to correct. Instructions and registers come from `tools/check-cuda`, which
// counts them in the machine code; the shape of a block from gpu/linear/cuda and
// gpu/attention/cuda. A plan says where its figures are guesses.
#pragma once

#include <array>
#include <cstdint>

#include "gpu/linear/weight_kind.hpp"

namespace twill::bench::paper {

/// How weights are held.
struct weight_format {
  int bits;           ///< 4, 8 or 16
  std::int32_t group; ///< columns of a scale and a zero point; 0 with 16 bits
  bool int8 = false;  ///< activations are int8, else 16 bits
};

/// A product of weights with few rows of activations, for up to 8, 16 and 32 rows a block.
struct gemm_plan {
  const char* name;
  weight_format weights;
  std::int32_t segment;               ///< columns between two scalings; slices hold whole ones
  int group_bytes;                    ///< of a group's scale and zero point
  std::array<double, 3> instructions; ///< of a thread, for each weight: warp instructions are 1/32
  std::array<int, 4> registers;       ///< of a thread; the last of 32 rows and two pairs of panels
};

// As tools/check-cuda counts them for sm_80, the whole loop. Of 32 rows with groups of 128 or 64
// its inner loop lacks the scaling at a segment's end, for which 0.5 and 1 were added, and 0.8 with
// int8 activations.
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

inline constexpr std::array<int, 3> gemm_rows = {8, 16, 32}; ///< of a block, at most
/// Blocks have two pairs of panels with more than 16 rows, from as many outputs on.
inline constexpr int gemm_outputs_for_two_pairs = 16384;
inline constexpr int gemm_outputs = 32;                ///< of a pair
inline constexpr int gemm_slices = 8;                  ///< of the columns; warps of a block
inline constexpr int gemm_bytes_in_flight = 48 * 1024; ///< of a block, in shared memory
inline constexpr double gemm_end_s = 0.5e-6;           ///< slices added up. Assumption
/// What a warp's mma reach of the card's rate. Derived: Marlin's plateau of 141 of 312 TFLOP/s.
inline constexpr double gemm_tensor_share = 0.45;

/// A product of packed weights with the rows of a prompt, in the larger of its two shapes: one
/// block of eight warps at a time on a multiprocessor.
struct prefill_plan {
  weight_format weights;
  int outputs, rows;   ///< of a block
  double instructions; ///< of a warp, for each mma: the whole inner loop, as counted for sm_80
};
/// An mma of int8 multiplies twice as many columns in the time of one of 16 bits.
inline constexpr prefill_plan prefill_plans[] = {
    {{4, 128}, 256, 64, 4.3}, {{4, 64}, 256, 64, 5.77},        {{4, 32}, 256, 64, 7.62},
    {{8, 64}, 256, 48, 6.29}, {{8, 32}, 256, 48, 8.33},        {{8, 16}, 256, 48, 10.67},
    {{16, 0}, 128, 128, 3.1}, {{8, 128, true}, 256, 48, 8.46},
};
/// What its mma reach of the card's rate. Assumption: each step of 32 columns waits at a barrier,
/// and the two warps of a scheduler seldom fill the gap that one leaves.
inline constexpr double prefill_tensor_share = 0.75;

// Decode attention over 16-bit KV with head_dim 128 and up to 8 query heads of a KV head. The
// machine code for sm_80 has about 9,500 warp instructions for a chunk of 131,072 bytes of KV and
// 2,000 for a block's start. Loads and the end are guesses.
inline constexpr int attention_chunk = 256; ///< positions
inline constexpr int attention_tile_heads = 8;
inline constexpr std::int64_t attention_enough_blocks = 2048; ///< where chunks are not spread
inline constexpr int attention_warps = 4;                     ///< of a block
inline constexpr int attention_registers = 128;
inline constexpr int attention_shared_bytes = 46176;        ///< of a block
inline constexpr int attention_bytes_in_flight = 24 * 1024; ///< of a block: three of four slots
inline constexpr double attention_instructions = 2.8;       ///< of a warp, for 32 bytes of KV
inline constexpr int attention_first_loads = 3;             ///< length, block table, keys
inline constexpr double attention_end_s = 0.5e-6;
inline constexpr double combine_s = 2e-6; ///< the launch that adds the chunks, all of it

// Attention of a prompt's rows over 16-bit KV with head_dim 128. The machine code for sm_80 has
// about 3,900 instructions of a warp for a chunk of 256 positions, which are 512 mma of eight query
// rows, each in two parts.
inline constexpr int prefill_attention_rows = 48; ///< pairs of a row and a query head, of a block
inline constexpr int prefill_attention_warps = 6; ///< of a block
inline constexpr int prefill_attention_registers = 168;
inline constexpr int prefill_attention_shared_bytes = 49 * 1024; ///< of a block
inline constexpr double prefill_attention_instructions = 7.6;    ///< of a warp, for each mma

// Kernels of one row: norms, rope with the store of KV, activation, embedding, choosing tokens.
inline constexpr int row_warps = 8; ///< of a block
inline constexpr int row_registers = 40;
inline constexpr double row_instructions = 0.25; ///< of a warp, for 32 bytes. Guess
inline constexpr double row_end_s = 0.3e-6;      ///< a reduction over the block. Guess
inline constexpr int rounding_columns = 1024;    ///< of a row's activations to int8, by a block
inline constexpr int choice_blocks = 16; ///< of a row of logits; a second launch merges them

} // namespace twill::bench::paper
