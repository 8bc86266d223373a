// attention_output: where attention's kernels write their results, and in which type.
#pragma once

#include <cstdint>

#include "gpu/detail/activation_element.hpp"

namespace twill::gpu::cuda {

/// The output tensor of attention, in f32, f16 or bf16. Each f32 result is rounded to this type
/// once. The struct does not own the memory.
struct attention_output {
  void* data; // (n_tokens, n_heads, head_dim)
  dtype type;
  std::int64_t stride; ///< elements from row to row

  template <class Ptx>
  TWILL_KERNEL_MEMBER void store(Ptx ptx, std::int64_t row, std::int64_t column,
                                 float value) const {
    detail::with_activation_element(type, [&](auto element) {
      using Element = decltype(element);
      ptx.store(static_cast<typename Element::stored*>(data) + row * stride + column,
                Element::narrow(value));
    });
  }
};

} // namespace twill::gpu::cuda
