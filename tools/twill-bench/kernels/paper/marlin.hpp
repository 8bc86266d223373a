// marlin: applies the model on paper to a kernel whose speed was measured: Marlin
// (IST-DASLab/marlin, marlin_cuda_kernel.cu), with counts taken from its source. The functions are
// pure.
//
// The published figures were measured with Marlin's bench.py and posted in a comment on the pull
// request vllm #2497: four products of a layer of a 13B model ("Llama13B" in bench.py), with one
// scale per column. As in bench.py, a figure is the sum of the four products' bytes divided by the
// sum of their seconds. bench.py does not print shapes. The four shapes here are those whose
// multiply-adds match the published TFLOP/s and seconds of batch 4,000 to within 0.03 %. The
// comment says "A100" but not which one. The fp16 products that it lists next to Marlin's ran at
// 1,482 GB/s, which an A100-40G only just reaches and an A100-80G reaches with ease. The report
// prints the prediction for both cards; the check in twill's tests uses the 40G, on which the
// published figures of the seed models (seed_layers.hpp) were measured.
#pragma once

#include <array>
#include <cstdint>

#include "tools/twill-bench/kernels/paper/model.hpp"

namespace twill::bench::paper {

/// One product with one scale per column.
kernel_counts marlin_counts(const card& on, std::int64_t rows, std::int64_t columns,
                            std::int64_t outputs);

struct marlin_figure {
  std::int64_t rows;
  double published_gb_per_s;
};
inline constexpr std::array<marlin_figure, 5> marlin_published = {
    {{1, 1158.601}, {8, 1160.100}, {16, 1152.943}, {32, 894.787}, {64, 582.332}}};

/// Published range for one product of 8192 x 8192 on an H100 with one row: 4.98 to 5.81 TFLOP/s,
/// converted to GB/s at a quarter byte per operation.
inline constexpr double marlin_h100_least_gb_per_s = 1245, marlin_h100_most_gb_per_s = 1453;

/// Predicted GB/s of the four products together, with the bytes counted as bench.py counts them.
double marlin_gb_per_s(const card& on, std::int64_t rows);

} // namespace twill::bench::paper
