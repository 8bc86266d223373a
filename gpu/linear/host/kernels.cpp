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

std::int64_t int8_direct_rows(weight_kind kind) {
  // Widening takes nine vector instructions for 64 codes, their products with a row one.
  if (kind == weight_kind::grouped_u4_as_u8) return 8;
#ifdef TWILL_X86
  // Zen 4 halves 512-bit instructions, so that products wait for multipliers, not for codes:
  // without panels the default model is decoded (`twill-bench engine --at-once N`) 10 % faster
  // with 20 rows, 7 % with 32, 3 % with 48, and 2 % slower with 128. On Cascade Lake panels gain a
  // quarter with 132 rows.
  static const bool halves = __builtin_cpu_is("amdfam19h") != 0;
  if (halves) return 64;
#endif
  return 16;
}

} // namespace twill::gpu::host
