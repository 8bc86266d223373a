// block_memory: the device memory that a block run takes, computed before anything is allocated.
// Pure; the same arrays that models/ and this folder allocate, counted by their shapes.
#pragma once

#include <cstdint>
#include <vector>

#include "actors/offload/block_run.hpp"
#include "actors/offload/packed_sizes.hpp"
#include "gpu/device.hpp"
#include "models/checkpoint/checkpoint.hpp"
#include "models/decoder/decoder.hpp"

namespace twill::actors {

struct block_memory {
  std::int64_t weights = 0; ///< at home on the device, and what always is
  std::int64_t ring = 0;
  std::int64_t kv = 0;          ///< the arena, and buffers for what travels
  std::int64_t activations = 0; ///< of micro-batches, and the workspace and scratch they share
  std::int64_t loading = 0;     ///< more than that, for a while, before the run
  std::int64_t all() const { return weights + ring + kv + activations + loading; }
};

/// `packed`: packed_sizes_of() these weights.
block_memory memory_of(const gpu::device& dev, const models::model_spec& spec,
                       const models::checkpoint& weights, const packed_sizes& packed,
                       const models::decoder_options& options,
                       const std::vector<block_prompt>& prompts, const block_options& run);

} // namespace twill::actors
