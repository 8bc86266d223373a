// cases: what `twill-bench kernels` measures. One op at one shape, with what it must at least read
// and compute, so that its time can be held against the machine's limits.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gpu/linear/packed_matrix.hpp"

namespace twill::bench {

struct kernel_case {
  std::string op;    ///< "linear u4/128 int8", "attention i8", ...
  std::string shape; ///< "1 x 4096 -> 14336"
  double bytes = 0;  ///< read or written at least, per run
  double operations = 0;
  gpu::compute_type compute = gpu::compute_type::f32; ///< whose peak bounds it
  std::function<void()> run;
};

struct kernel_selection {
  std::vector<std::int64_t> rows; ///< rows of activations of the linear layers
  std::string only;               ///< cases whose "op shape" contains this; empty: all
  bool small = false;             ///< toy shapes, to try the program itself
};

/// Makes the cases one after the other and hands each to `measure`; its memory is freed after.
/// Throws std::runtime_error where the device's memory does not suffice.
void for_each_kernel_case(gpu::device& dev, const kernel_selection& selection,
                          const std::function<void(const kernel_case&)>& measure);

} // namespace twill::bench
