#include "gpu/host/simd_avx2.hpp"
#include "gpu/linear/host/tile_templates.hpp"

namespace twill::gpu::host {

constinit const kernels avx2_kernels = make_kernels<simd_avx2>();

} // namespace twill::gpu::host
