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

/// A product of weights with few rows of activations, for up to 8, 16 and 32 rows a block.
struct gemm_plan {
  const char* name;
  std::int32_t group;                 ///< columns of a scale and a zero point; 0: 16-bit weights
  std::array<double, 3> instructions; ///< of a thread, for each weight: warp instructions are 1/32
  std::array<int, 3> registers;       ///< of a thread
};

// Planned, not yet compiled: the group of 128 at 8 rows follows a sketch that was compiled once
// (1.9 instructions, 94 registers), the rest is scaled from it; 8 more rows are taken for 0.25
// instructions a weight, 0.2 with 16 bits.
inline constexpr gemm_plan gemm_plans[] = {
    {"gemm_w4/128", 128, {1.9, 2.15, 2.65}, {96, 112, 128}},
    {"gemm_w4/64", 64, {2.1, 2.35, 2.85}, {96, 112, 128}},
    {"gemm_w4/32", 32, {2.8, 3.05, 3.55}, {96, 112, 128}},
    {"gemm_16", 0, {0.35, 0.55, 0.95}, {96, 112, 128}},
};

inline constexpr std::array<int, 3> gemm_rows = {8, 16, 32}; ///< of a block, at most
inline constexpr std::array<int, 3> gemm_pairs = {1, 1, 2};  ///< pairs of panels of a block
inline constexpr int gemm_outputs = 32;                      ///< of a pair
inline constexpr int gemm_slices = 8;                        ///< of the columns; warps of a block
inline constexpr int gemm_bytes_in_flight = 48 * 1024;       ///< of a block, in shared memory
inline constexpr int gemm_step = 32;                         ///< columns; slices hold whole steps
inline constexpr double gemm_end_s = 0.5e-6;                 ///< slices added up. Assumption
/// What a warp's mma reach of the card's rate. Derived: Marlin's plateau of 141 of 312 TFLOP/s.
inline constexpr double gemm_tensor_share = 0.45;
/// Bytes of a group's scale and zero point.
inline constexpr double group_bytes = 3;

// Decode attention. Instructions, registers, loads and the end are guesses.
inline constexpr int attention_chunk = 256; ///< positions of a block
inline constexpr int attention_warps = 4;   ///< of a block
inline constexpr int attention_registers = 128;
inline constexpr int attention_bytes_in_flight = 36 * 1024;
inline constexpr double attention_instructions = 1.2; ///< of a warp, for 32 bytes of KV
inline constexpr int attention_first_loads = 3;       ///< length, block table, keys
inline constexpr double attention_end_s = 0.5e-6;
inline constexpr double combine_s = 2e-6; ///< the launch that adds the chunks, all of it

// Kernels of one row: norms, rope with the store of KV, activation, embedding, choosing tokens.
inline constexpr int row_warps = 8; ///< of a block
inline constexpr int row_registers = 40;
inline constexpr double row_instructions = 0.25; ///< of a warp, for 32 bytes. Guess
inline constexpr double row_end_s = 0.3e-6;      ///< a reduction over the block. Guess
inline constexpr int choice_blocks = 16; ///< of a row of logits; a second launch merges them

} // namespace twill::bench::paper
