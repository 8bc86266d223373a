// float_arrays: allocates several device arrays of floats at once, for the structs that name them.
//
// Called on the decoder's thread.
#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "gpu/device.hpp"
#include "models/errc.hpp"

namespace twill::models {

struct float_array {
  std::variant<float**, void**> at; ///< receives the address
  std::int64_t rows;
  std::int64_t cols;
  const char* label; ///< names the array in an error
  gpu::dtype type = gpu::dtype::f32;
};

/// Allocates all of `arrays`; the buffers own their memory. Fails with out_of_memory.
result<std::vector<gpu::buffer>> allocate_arrays(gpu::device& dev,
                                                 std::span<const float_array> arrays);

} // namespace twill::models
