// element: the element types of dense tensors, by their safetensors names. Pure data and functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "gpu/linear/weight_kind.hpp"

namespace twill::models {

struct element_info {
  const char* name; ///< "F16", ...
  std::int32_t bytes;
  bool is_weight;         ///< true for F32, F16 and BF16, which can be handed out as numbers
  gpu::weight_kind dense; ///< the kind of a weight; read when is_weight is true
};

/// The type of that name; nullptr when there is none.
const element_info* find_element(std::string_view name);

/// Widens `n` values of a weight element; `values` may have any alignment.
void widen_values(gpu::weight_kind dense, const std::byte* values, std::int64_t n, float* out);

} // namespace twill::models
