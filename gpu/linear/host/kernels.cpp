#include "gpu/linear/host/kernels.hpp"

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

std::int64_t int8_gemv_rows(weight_kind kind) {
  // Widening 64 codes takes nine vector instructions and multiplying them with a row takes one, so
  // unpacking once pays early.
  if (kind == weight_kind::grouped_u4_as_u8) return 8;
#ifdef TWILL_X86
  // Zen 4 executes 512-bit instructions in two halves: products wait for the multipliers rather
  // than for unpacking, which makes the GEMV form the faster one for more rows than elsewhere.
  static const bool halves = __builtin_cpu_is("amdfam19h") != 0;
  if (halves) return 64;
#endif
  return 16;
}

} // namespace twill::gpu::host
