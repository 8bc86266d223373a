// job_memory: the device memory that a block run takes, computed before anything is allocated.
// Pure; the same arrays that models/ and this folder allocate, counted by their shapes.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/device.hpp"
#include "models/checkpoint/checkpoint.hpp"
#include "models/decoder/decoder.hpp"
#include "models/memory_estimate/memory_estimate.hpp"
#include "models/offload/job/offload_job.hpp"

namespace twill::models::offload {

struct job_memory {
  std::int64_t weights = 0; ///< at home on the device, and what always is
  std::int64_t ring = 0;
  std::int64_t kv = 0;          ///< the arena, and buffers for what travels
  std::int64_t activations = 0; ///< of micro-batches, and the workspace and scratch they share
  std::int64_t loading = 0;     ///< more than that, for a while, before the run
  std::int64_t all() const { return weights + ring + kv + activations + loading; }
};

/// `packed`: estimate_packed_weights() these weights.
job_memory estimate_job_memory(const gpu::device& dev, const model_spec& spec,
                               const checkpoint& weights, const packed_weights& packed,
                               const decoder_options& options,
                               const std::vector<job_prompt>& prompts, const job_options& run);

} // namespace twill::models::offload
