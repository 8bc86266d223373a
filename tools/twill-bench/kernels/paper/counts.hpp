// counts: what twill's kernels read, issue and occupy, computed from the constants in plans.hpp.
// The functions are pure.
#pragma once

#include <cstdint>

#include "tools/twill-bench/kernels/paper/model.hpp"
#include "tools/twill-bench/kernels/paper/plans.hpp"

namespace twill::bench::paper {

/// Returns the constants (plans.hpp) of the kernel for weights of this format. A plan must have the
/// same number of bits and the same type of activations as `weights`. Where no such plan has the
/// same group size, the result is the plan with the next smaller group size, or with the smallest
/// one where none is smaller.
const gemm_plan& plan_of(weight_format weights);

/// A product out (rows, outputs) f32 = x (rows, columns) * W^T with few rows, where x is f16, or
/// int8 when `format` says so. The weights are read from DRAM once, and from L2 again for each
/// further group of up to 32 rows. Activations and outputs stay in L2.
kernel_counts gemm_counts(const card& on, std::int64_t rows, std::int64_t columns,
                          std::int64_t outputs, weight_format format);

/// The matrix product for the rows of a prompt. Weights, activations and outputs are counted once
/// between L2 and DRAM, which is too few where they do not fit into L2. A thread block is assumed
/// to write its outputs while nothing else runs on its multiprocessor. The outputs are f32. When
/// `gated` is true, half of the outputs are the gate of the other half, and the block writes only
/// the gated result in 16 bits.
kernel_counts prefill_counts(const card& on, std::int64_t rows, std::int64_t columns,
                             std::int64_t outputs, weight_format format, bool gated);

struct attention_shape {
  std::int32_t n_heads, n_kv_heads, head_dim;
};
/// Decode attention of `sequences` sequences, each with one new token, over `positions` positions
/// of 16-bit KV.
kernel_counts attention_counts(const card& on, const attention_shape& shape, std::int64_t sequences,
                               std::int64_t positions);

/// Attention of a prompt of `rows` tokens over itself, with 16-bit KV. Thread blocks of early rows
/// see fewer positions and take less time; here every block counts with the mean number of
/// positions.
kernel_counts prefill_attention_counts(const card& on, const attention_shape& shape,
                                       std::int64_t rows);

/// The rounding of activations (rows, columns) from f32 to int8. The bytes read and the bytes
/// written are also counted as DRAM bytes.
kernel_counts rounding_counts(const card& on, std::int64_t rows, std::int64_t columns);

/// A kernel that works on one row at a time (plans.hpp). It has `blocks` thread blocks and moves
/// `bytes` bytes through L2, of which `dram_bytes` go through DRAM.
kernel_counts row_counts(const card& on, std::int64_t blocks, double bytes, double dram_bytes = 0);

} // namespace twill::bench::paper
