// float_arrays: allocates several device arrays of floating-point numbers in one call, and writes
// their addresses to the pointers that a struct such as `workspace` keeps for them.
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
  std::variant<float**, void**> at; ///< the pointer that receives the array's address
  std::int64_t rows;
  std::int64_t cols;
  const char* label; ///< name of the array in an error message
  gpu::dtype type = gpu::dtype::f32;
};

/// Allocates all of `arrays`; the buffers own their memory. Fails with out_of_memory.
result<std::vector<gpu::buffer>> allocate_arrays(gpu::device& dev,
                                                 std::span<const float_array> arrays);

} // namespace twill::models
