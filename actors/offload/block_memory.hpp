// block_memory: the device memory that a block run takes, computed before anything is allocated.
// Pure; the same arrays that models/ and this folder allocate, counted by their shapes.
#pragma once

#include <cstdint>
#include <vector>

#include "actors/offload/block_run.hpp"
#include "actors/offload/choose_offload.hpp"
#include "models/decoder.hpp"

namespace twill::actors {

struct block_memory {
  std::int64_t weights = 0; ///< at home on the device, and what always is
  std::int64_t ring = 0;
  std::int64_t kv = 0;          ///< the arena, and buffers for what travels
  std::int64_t activations = 0; ///< of micro-batches, and the workspace they share
  std::int64_t all() const { return weights + ring + kv + activations; }
};

block_memory memory_of(const models::model_spec& spec, const models::decoder_options& options,
                       const std::vector<block_prompt>& prompts, const block_options& run,
                       const offload_room& room);

} // namespace twill::actors
