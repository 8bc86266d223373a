// float_arrays: several device arrays of f32 at once, for the structs that name them. Owned by the
// decoder's thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/device.hpp"
#include "models/errc.hpp"

namespace twill::models {

struct float_array {
  float** at; ///< gets the address
  std::int64_t rows;
  std::int64_t cols;
  const char* label; ///< in the error when there is no room
};

/// The memory of all of them.
result<std::vector<gpu::buffer>> allocate_arrays(gpu::device& dev,
                                                 std::span<const float_array> arrays);

} // namespace twill::models
