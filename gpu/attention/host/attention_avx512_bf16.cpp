#define TWILL_LANES 16
#include "gpu/attention/host/attention_bf16.hpp"
#include "gpu/attention/host/online_softmax.hpp"

namespace twill::gpu::host {

attention_kernels attention_avx512_bf16() {
  return make_attention<bf16_products>();
}

} // namespace twill::gpu::host
