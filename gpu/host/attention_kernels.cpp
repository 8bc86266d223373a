#include "gpu/host/attention_kernels.hpp"

namespace twill::gpu::host {

attention_kernels attention_kernels_for(isa level) {
#ifdef TWILL_X86
  if (level >= isa::avx512) return attention_avx512();
  if (level >= isa::avx2) return attention_avx2();
#else
  static_cast<void>(level);
#endif
  return attention_plain();
}

} // namespace twill::gpu::host
