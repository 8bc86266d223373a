// family: the kernels of one op, as the harness checks and times them.
//
// A family knows its op's public function and which calls CUDA's own kernels take. It runs on any
// device, so that tests try its checks on the host. Everything belongs to the device's thread.
#pragma once

#include <string>

#include "gpu/device.hpp"
#include "tools/gpu-kernels/results.hpp"

namespace twill::gpu_kernels {

struct options {
  std::string only;   ///< only what has this text in its kernel's name and shape; empty: all
  bool small = false; ///< toy shapes
  bool graphs = true; ///< capture launches to time them
};

struct family {
  const char* name;
  /// Compares results with a naive reference in double precision, and adds an outcome for each
  /// shape.
  void (*check)(gpu::device& dev, const options& chosen, results& out);
  /// Times the kernels at the shapes of the seed models.
  void (*measure)(gpu::device& dev, const options& chosen, results& out);
};

family linear_family(); ///< linear_kernels.cpp

} // namespace twill::gpu_kernels
