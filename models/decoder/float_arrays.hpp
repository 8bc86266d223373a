// float_arrays: allocates several device arrays of f32 at once, for the structs that name them.
//
// Called on the decoder's thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/device.hpp"
#include "models/errc.hpp"

namespace twill::models {

struct float_array {
  float** at; ///< receives the address
  std::int64_t rows;
  std::int64_t cols;
  const char* label; ///< names the array in an error
};

/// Allocates all of `arrays`; the buffers own their memory. Fails with out_of_memory.
result<std::vector<gpu::buffer>> allocate_arrays(gpu::device& dev,
                                                 std::span<const float_array> arrays);

} // namespace twill::models
