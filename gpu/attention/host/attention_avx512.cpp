#define TWILL_LANES 16
#include "gpu/attention/host/online_softmax.hpp"

namespace twill::gpu::host {

attention_kernels attention_avx512() {
  return make_attention<f32_products>();
}

} // namespace twill::gpu::host
