#define TWILL_LANES 8
#include "gpu/host/attention_rows.hpp"

namespace twill::gpu::host {

attention_kernels attention_avx2() {
  return {attention_whole, attention_partial, attention_merge};
}

} // namespace twill::gpu::host
