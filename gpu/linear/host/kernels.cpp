#include "gpu/linear/host/kernels.hpp"

namespace twill::gpu::host {

const kernels& kernels_for(isa level) {
#ifdef TWILL_X86
  static const kernels vnni = [] {
    kernels table = avx512_kernels;
    table.quantise = avx512_vnni_kernels.quantise;
    table.tile_int8 = avx512_vnni_kernels.tile_int8;
    table.spin = avx512_vnni_kernels.spin;
    table.gates = avx512_vnni_kernels.gates;
    return table;
  }();
  static const kernels bf16 = [] {
    kernels table = vnni;
    table.tile_bf16 = avx512_bf16_kernels.tile_bf16;
    table.spin = avx512_bf16_kernels.spin;
    return table;
  }();
  switch (level) {
  case isa::plain:
    break;
  case isa::avx2:
    return avx2_kernels;
  case isa::avx512:
    return avx512_kernels;
  case isa::avx512_vnni:
    return vnni;
  case isa::avx512_bf16:
    return bf16;
  }
#else
  (void)level;
#endif
  return plain_kernels;
}

std::int64_t int8_gemv_rows(weight_kind kind) {
  // Widening 64 codes takes nine vector instructions and multiplying them by a row takes one. So
  // the GEMM kernel, which unpacks the codes only once, is faster from a small number of rows on.
  if (kind == weight_kind::grouped_u4_as_u8) return 8;
#ifdef TWILL_X86
  // Zen 4 executes 512-bit instructions in two halves. Its products are limited by the multipliers
  // and not by unpacking, so the GEMV kernel stays faster up to more rows than on other processors.
  static const bool halves = __builtin_cpu_is("amdfam19h") != 0;
  if (halves) return 64;
#endif
  return 16;
}

} // namespace twill::gpu::host
