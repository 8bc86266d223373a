#include "gpu/host/simd_plain.hpp"
#include "gpu/linear/host/tile_templates.hpp"

namespace twill::gpu::host {

constinit const kernels plain_kernels = make_kernels<simd_plain>();

} // namespace twill::gpu::host
