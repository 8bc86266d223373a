#define TWILL_LANES 16
#include "gpu/host/attention_rows.hpp"

namespace twill::gpu::host {

attention_kernels attention_avx512() {
  return make_attention<f32_products>();
}

} // namespace twill::gpu::host
