// family: the interface through which the harness in tools/gpu-kernels checks and times the CUDA
// kernels of one op. A family is all kernels of that op.
//
// The checks call the op's public function, with the shapes and types for which CUDA kernels exist.
// They run on any device, so that tests can run them on the host. Only the device's thread may call
// the functions.
#pragma once

#include <string>

#include "gpu/device.hpp"
#include "tools/gpu-kernels/results.hpp"

namespace twill::gpu_kernels {

struct options {
  std::string only;   ///< only cases whose kernel's name and shape contain this text; empty: all
  bool small = false; ///< toy shapes
  bool graphs = true; ///< capture launches to time them
};

struct family {
  const char* name;
  /// Compares the results of the kernels with a naive reference in double precision, and adds one
  /// outcome per shape to `out`.
  void (*check)(gpu::device& dev, const options& chosen, results& out);
  /// Times the kernels at the shapes of the seed models.
  void (*measure)(gpu::device& dev, const options& chosen, results& out);
};

family linear_family(); ///< linear_kernels.cpp

} // namespace twill::gpu_kernels
