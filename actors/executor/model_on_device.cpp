#include "actors/executor/model_on_device.hpp"

#include <algorithm>

#include "actors/executor/device_sampler.hpp"
#include "config/base/units.hpp"
#include "gpu/machine.hpp"
#include "models/memory_estimate/memory_estimate.hpp"

namespace twill::actors {

std::int64_t usable_bytes(const gpu::device& device) {
  const std::int64_t budget = device.info().memory_bytes;
  const std::int64_t host = device.memory_is_host() ? gpu::machine::available_bytes() : 0;
  return host > 0 ? std::min(host, budget) : budget;
}

std::int64_t model_on_device::workspace_bytes(const models::decoder_options& sizes) const {
  const std::int32_t rows = sizes.max_logit_rows, tops = options.limits.max_logprobs;
  const std::int32_t vocab = model.spec.vocab_size;
  // Ops use the same scratch memory one after the other, so the largest need counts.
  const std::int64_t scratch =
      std::max(models::estimate_scratch_bytes(device, model.spec, *model.weights, sizes),
               device_sampler::scratch_bytes(device, rows, tops, vocab));
  // Other small arrays are not counted one by one.
  const std::int64_t small = std::clamp<std::int64_t>(available_bytes / 32, 8 * mib, 64 * mib);
  return models::estimate_step_bytes(device.info(), model.spec, sizes) + scratch +
         device_sampler::array_bytes(rows, tops, vocab) + small;
}

} // namespace twill::actors
