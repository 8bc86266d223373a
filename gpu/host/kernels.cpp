#include "gpu/host/kernels.hpp"

namespace twill::gpu::host {

const kernels& kernels_for(isa level) {
#ifdef TWILL_X86
  switch (level) {
  case isa::plain:
    break;
  case isa::avx2:
    return avx2_kernels;
  case isa::avx512:
    return avx512_kernels;
  case isa::avx512_vnni:
    return avx512_vnni_kernels;
  case isa::avx512_bf16:
    return avx512_bf16_kernels;
  }
#else
  (void)level;
#endif
  return plain_kernels;
}

} // namespace twill::gpu::host
