#include "gpu/host/simd_avx512.hpp"
#include "gpu/linear/host/tile_templates.hpp"

namespace twill::gpu::host {

constinit const kernels avx512_vnni_kernels = make_int8_kernels<simd_avx512>();

} // namespace twill::gpu::host
