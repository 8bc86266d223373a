// counts: what twill's kernels read, issue and occupy (plans.hpp holds their constants).
// Pure functions.
#pragma once

#include <cstdint>

#include "tools/twill-bench/kernels/paper/model.hpp"
#include "tools/twill-bench/kernels/paper/plans.hpp"

namespace twill::bench::paper {

/// The plan for such weights and activations. Groups of other sizes take the plan of the next
/// smaller one of as many bits. A group smaller than every plan's takes the plan with the smallest
/// group.
const gemm_plan& plan_of(weight_format weights);

/// A product: out (rows, outputs) f32 = x (rows, columns) f16, or int8 as `format` says, * W^T. The
/// weights come from DRAM once, and from L2 again for every further 32 rows; activations and
/// outputs are in L2.
kernel_counts gemm_counts(const card& on, std::int64_t rows, std::int64_t columns,
                          std::int64_t outputs, weight_format format);

/// The same product for a prompt's rows. Weights, activations and outputs each pass between L2 and
/// DRAM once, which is too few where L2 is smaller than they are. A block's outputs are written
/// when nothing else runs on its multiprocessor: in f32, or, where a half of them is the gate of
/// the other (`gated`), their product in 16 bits.
kernel_counts prefill_counts(const card& on, std::int64_t rows, std::int64_t columns,
                             std::int64_t outputs, weight_format format, bool gated);

struct attention_shape {
  std::int32_t n_heads, n_kv_heads, head_dim;
};
/// Attention of `sequences` that each decode one token, over `positions` with KV in 16 bits.
kernel_counts attention_counts(const card& on, const attention_shape& shape, std::int64_t sequences,
                               std::int64_t positions);

/// Attention of a prompt of `rows` tokens over itself, with KV in 16 bits. Blocks with less to see
/// take less time, and are even on average: they count as if all had the mean.
kernel_counts prefill_attention_counts(const card& on, const attention_shape& shape,
                                       std::int64_t rows);

/// The rounding of (rows, columns) activations from f32 to int8, which also pass through DRAM.
kernel_counts rounding_counts(const card& on, std::int64_t rows, std::int64_t columns);

/// A kernel of `blocks` blocks that moves `bytes` through L2 and `dram_bytes` of them from DRAM.
kernel_counts row_counts(const card& on, std::int64_t blocks, double bytes, double dram_bytes = 0);

} // namespace twill::bench::paper
