// marlin: what the model on paper says of a kernel that was measured: Marlin (IST-DASLab/marlin,
// marlin_cuda_kernel.cu), from the counts of its source. Pure functions.
//
// The published figures are those of its bench.py in vllm #2497: four products of a layer of 13B
// (its "Llama13B"), scales a column; their sum of bytes over their sum of seconds, as bench.py
// does. bench.py does not print shapes: the four are the ones whose multiply-adds give the
// published TFLOP/s and seconds of batch 4,000 to within 0.03 %. The comment says "A100" and not
// which one; the fp16 products beside them ran at 1,482 GB/s, which an A100-40G only just reads and
// an A100-80G reads with ease. Both are printed; twill's check is held against the 40G, which the
// seeds were measured on.
#pragma once

#include <array>
#include <cstdint>

#include "tools/twill-bench/kernels/paper/model.hpp"

namespace twill::bench::paper {

/// One product with scales a column.
kernel_counts marlin_counts(const card& on, std::int64_t rows, std::int64_t columns,
                            std::int64_t outputs);

struct marlin_figure {
  std::int64_t rows;
  double published_gb_per_s;
};
inline constexpr std::array<marlin_figure, 5> marlin_published = {
    {{1, 1158.601}, {8, 1160.100}, {16, 1152.943}, {32, 894.787}, {64, 582.332}}};

/// One product of 8192 x 8192 on an H100 at one row: 4.98 to 5.81 TFLOP/s, a quarter byte for each
/// operation.
inline constexpr double marlin_h100_least_gb_per_s = 1245, marlin_h100_most_gb_per_s = 1453;

/// GB/s of the four products in a row, by bench.py's reckoning of bytes.
double marlin_gb_per_s(const card& on, std::int64_t rows);

} // namespace twill::bench::paper
