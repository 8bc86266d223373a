#include "tools/twill-bench/kernels/paper/counts.hpp"

#include <algorithm>
#include <iterator>
#include <span>

#include "tools/twill-bench/kernels/paper/arithmetic.hpp"

namespace twill::bench::paper {

namespace {

template <class Plan>
const Plan& chosen_of(std::span<const Plan> plans, weight_format weights) {
  const Plan* smallest = nullptr; // among plans with as many bits, which list larger groups first
  for (const Plan& plan : plans) {
    if (plan.weights.bits != weights.bits || plan.weights.int8 != weights.int8) continue;
    smallest = &plan;
    if (plan.weights.group <= weights.group) break;
  }
  return *smallest;
}

double bytes_of_activation(weight_format format) {
  return format.int8 ? 1 : 2;
}

/// Multiply-adds of one mma instruction.
double mma_size(weight_format format) {
  return fma_of_mma * (format.int8 ? 2 : 1);
}

/// Bytes of a packed matrix with its scales.
double weight_bytes(double weights, weight_format format, int group_bytes) {
  return weights * format.bits / 8 +
         (format.group == 0 ? 0 : weights / static_cast<double>(format.group) * group_bytes);
}

} // namespace

const gemm_plan& plan_of(weight_format weights) {
  return chosen_of<gemm_plan>(gemm_plans, weights);
}

kernel_counts gemm_counts(const card& on, std::int64_t rows, std::int64_t columns,
                          std::int64_t outputs, weight_format format) {
  const gemm_plan& plan = plan_of(format);
  std::size_t i = 0;
  while (i + 1 < gemm_rows.size() && gemm_rows[i] < rows)
    ++i;
  const std::int64_t row_groups = ceil_div(rows, gemm_rows[i]);
  const bool two_pairs = gemm_rows[i] > 16 && outputs >= gemm_outputs_for_two_pairs;
  const std::int64_t output_groups = ceil_div(outputs, gemm_outputs * (two_pairs ? 2 : 1));
  const double weights = static_cast<double>(columns) * static_cast<double>(outputs);
  const double bytes = weight_bytes(weights, format, plan.group_bytes);
  const double tiles = static_cast<double>(row_groups * (gemm_rows[i] / 8));

  kernel_counts c;
  c.dram_bytes = bytes;
  c.l2_bytes = static_cast<double>(row_groups) * bytes +
               static_cast<double>(output_groups * rows * columns) * bytes_of_activation(format) +
               static_cast<double>(rows * outputs) * 4;
  c.warp_instructions = static_cast<double>(row_groups) * weights * plan.instructions[i] / 32;
  c.mmas = weights * tiles * 8 / mma_size(format);
  c.tensor_share = gemm_tensor_share;
  // The last slice may have fewer segments than the others.
  const std::int64_t segments = ceil_div(columns, plan.segment);
  c.busiest = static_cast<double>(ceil_div(segments, gemm_slices) * gemm_slices) /
              static_cast<double>(segments);
  c.blocks = output_groups * row_groups;
  c.warps_of_block = gemm_slices;
  c.blocks_at_once =
      blocks_at_once(on, 32 * gemm_slices, plan.registers[two_pairs ? 3 : i], gemm_bytes_in_flight);
  c.bytes_in_flight = gemm_bytes_in_flight;
  c.end_s = gemm_end_s;
  return c;
}

kernel_counts prefill_counts(const card& on, std::int64_t rows, std::int64_t columns,
                             std::int64_t outputs, weight_format format, bool gated) {
  const prefill_plan& plan = chosen_of<prefill_plan>(prefill_plans, format);
  const std::int64_t row_groups = ceil_div(rows, plan.rows);
  const std::int64_t output_groups = ceil_div(outputs, plan.outputs);
  const double bytes = weight_bytes(static_cast<double>(columns) * static_cast<double>(outputs),
                                    format, plan_of(format).group_bytes);
  const double x_bytes = static_cast<double>(rows * columns) * bytes_of_activation(format);
  // Bytes per output. Of a gated product, only half as many values remain, with 2 bytes each.
  const double each = gated ? 0.5 * 2 : 4;
  const double out_bytes = static_cast<double>(rows * outputs) * each;
  const double of_block = static_cast<double>(plan.outputs * plan.rows);

  kernel_counts c;
  c.dram_bytes = bytes + x_bytes + out_bytes;
  c.l2_bytes = static_cast<double>(row_groups) * bytes +
               static_cast<double>(output_groups) * x_bytes + out_bytes;
  c.blocks = output_groups * row_groups;
  c.mmas =
      static_cast<double>(c.blocks) * of_block * static_cast<double>(columns) / mma_size(format);
  c.warp_instructions = c.mmas * plan.instructions;
  c.tensor_share = prefill_tensor_share;
  c.warps_of_block = 8;
  c.end_s = of_block * each * on.multiprocessors / on.dram_bytes_per_s;
  return c;
}

kernel_counts attention_counts(const card& on, const attention_shape& shape, std::int64_t sequences,
                               std::int64_t positions) {
  const double bytes =
      static_cast<double>(sequences * positions * shape.n_kv_heads) * shape.head_dim * 2 * 2;
  const double rows = static_cast<double>(sequences * shape.n_heads) * shape.head_dim;
  const std::int64_t chunks = ceil_div(positions, attention_chunk);

  kernel_counts c;
  c.dram_bytes = bytes;
  // Queries and the partial output of each chunk are f32.
  c.l2_bytes = bytes + rows * 4 + static_cast<double>(chunks) * rows * 4;
  c.warp_instructions = bytes / 32 * attention_instructions;
  // There are two products: queries times keys, and softmax weights times values. The f32 factor of
  // each is split into two 16-bit parts. The 16 rows of an mma are both parts for eight query heads
  // of one KV head.
  const std::int64_t tiles = ceil_div(shape.n_heads / shape.n_kv_heads, attention_tile_heads);
  c.mmas = static_cast<double>(sequences * positions * shape.n_kv_heads * tiles) * 16 *
           shape.head_dim * 2 / fma_of_mma;
  c.tensor_share = gemm_tensor_share;
  // Where there are enough rows and heads, one block takes several chunks of a row.
  const std::int64_t of_rows = sequences * shape.n_kv_heads;
  c.blocks = of_rows * std::min(chunks, ceil_div(attention_enough_blocks, of_rows));
  c.warps_of_block = attention_warps;
  c.blocks_at_once =
      blocks_at_once(on, 32 * attention_warps, attention_registers, attention_shared_bytes);
  c.bytes_in_flight = attention_bytes_in_flight;
  c.first_loads = attention_first_loads;
  c.end_s = attention_end_s;
  return c;
}

kernel_counts prefill_attention_counts(const card& on, const attention_shape& shape,
                                       std::int64_t rows) {
  const double kv_bytes = static_cast<double>(rows * shape.n_kv_heads) * shape.head_dim * 2 * 2;
  const double row_bytes = static_cast<double>(rows * shape.n_heads) * shape.head_dim;
  const std::int64_t group = shape.n_heads / shape.n_kv_heads;
  const std::int64_t blocks_of_head = ceil_div(rows * group, prefill_attention_rows);
  // A block sees the positions up to its last row, in whole tiles of 32; this is the mean.
  const double seen = static_cast<double>(rows) / 2 + 32;

  kernel_counts c;
  c.blocks = blocks_of_head * shape.n_kv_heads;
  c.dram_bytes = kv_bytes + row_bytes * (4 + 2); // queries are f32, outputs have 16 bits
  c.l2_bytes = row_bytes * (4 + 2) + static_cast<double>(c.blocks) * seen * shape.head_dim * 2 * 2;
  // There are two products: queries times keys, and softmax weights times values. The f32 factor of
  // each is split into two 16-bit parts, which doubles the number of multiply-adds.
  c.mmas = static_cast<double>(c.blocks * prefill_attention_rows) * seen * shape.head_dim * 2 * 2 /
           fma_of_mma;
  c.warp_instructions = c.mmas * prefill_attention_instructions;
  c.tensor_share = prefill_tensor_share;
  c.warps_of_block = prefill_attention_warps;
  c.blocks_at_once = blocks_at_once(on, 32 * prefill_attention_warps, prefill_attention_registers,
                                    prefill_attention_shared_bytes);
  c.first_loads = attention_first_loads;
  c.end_s = attention_end_s;
  return c;
}

kernel_counts rounding_counts(const card& on, std::int64_t rows, std::int64_t columns) {
  const double bytes = static_cast<double>(rows * columns) * (4 + 1);
  return row_counts(on, rows * ceil_div(columns, rounding_columns), bytes, bytes);
}

kernel_counts row_counts(const card& on, std::int64_t blocks, double bytes, double dram_bytes) {
  kernel_counts c;
  c.dram_bytes = dram_bytes;
  c.l2_bytes = bytes;
  c.warp_instructions = bytes / 32 * row_instructions;
  c.blocks = blocks;
  c.warps_of_block = row_warps;
  c.blocks_at_once = blocks_at_once(on, 32 * row_warps, row_registers, 0);
  c.end_s = row_end_s;
  return c;
}

} // namespace twill::bench::paper
