#include "gpu/host/simd_avx512.hpp"
#include "gpu/linear/host/tile_templates.hpp"

namespace twill::gpu::host {

constinit const kernels avx512_bf16_kernels = make_bf16_kernels<simd_avx512>();

} // namespace twill::gpu::host
