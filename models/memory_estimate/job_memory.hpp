// job_memory: estimates the device memory that an offline job takes, before anything is allocated.
// It adds the buffers for streamed KV and hidden states, and the activations of all micro-batches,
// to the results of memory_estimate.hpp. Any thread may call.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/device.hpp"
#include "models/checkpoint/checkpoint.hpp"
#include "models/decoder/decoder.hpp"
#include "models/memory_estimate/memory_estimate.hpp"
#include "models/offload/job/offload_job.hpp"

namespace twill::models {

struct job_memory {
  std::int64_t weights = 0; ///< weights that live on the device
  std::int64_t ring = 0;
  std::int64_t kv = 0;          ///< the KV arena, and buffers for streamed KV
  std::int64_t activations = 0; ///< activations of all micro-batches, workspace and scratch memory
  std::int64_t loading = 0;     ///< further memory that loading needs temporarily
  std::int64_t all() const { return weights + ring + kv + activations + loading; }
};

/// `packed` is the result of estimate_packed_weights() for these weights.
job_memory estimate_job_memory(const gpu::device& dev, const model_spec& spec,
                               const checkpoint& weights, const packed_weights& packed,
                               const decoder_options& options,
                               const std::vector<offload::job_prompt>& prompts,
                               const offload::job_options& run);

} // namespace twill::models
