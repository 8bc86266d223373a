#include "gpu/attention/host/attention_kernels.hpp"

namespace twill::gpu::host {

attention_kernels attention_kernels_for(isa level, bool bf16_products) {
#ifdef TWILL_X86
  if (bf16_products && level >= isa::avx512_bf16) return attention_avx512_bf16();
  if (level >= isa::avx512) return attention_avx512();
  if (level >= isa::avx2) return attention_avx2();
#else
  static_cast<void>(level);
  static_cast<void>(bf16_products);
#endif
  return attention_plain();
}

} // namespace twill::gpu::host
