#define TWILL_LANES 4
#include "gpu/host/attention_rows.hpp"

namespace twill::gpu::host {

attention_kernels attention_plain() {
  return {attention_whole, attention_partial, attention_merge};
}

} // namespace twill::gpu::host
