// runner_info: what the executor reports of a step_runner and its model once it has loaded. A plain
// value.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "actors/port/engine_stats.hpp"

namespace twill::models {
struct model;
}

namespace twill::actors {

/// Properties of a runner and its model, known once it has loaded.
struct runner_info {
  std::shared_ptr<const models::model> model;
  std::string device; ///< for log lines: "host (AMD EPYC, Kokkos 3.4.1 OpenMP, 16 threads)"
  std::int32_t n_blocks = 0;
  std::int32_t block_tokens = 0;
  std::int32_t max_context_tokens = 0;  ///< prompt + output per sequence
  std::int32_t max_step_tokens = 0;     ///< the most tokens that a step computes
  std::int32_t mixed_prompt_tokens = 0; ///< see plan_limits; 0: not set by a plan
  std::int32_t max_logit_rows = 256;    ///< the most draws and scored prompt tokens of a step
  std::int64_t memory_used_bytes = 0;   ///< reserved on the device
  std::int64_t weight_bytes = 0;        ///< the part of memory_used_bytes that holds weights
  bool memory_is_host = false;          ///< device memory is memory of this process
  std::int64_t outside_bytes = 0;       ///< for a GPU: memory taken beside memory_used_bytes
  /// Returns how many of the `memory_used_bytes` were never accessed, so that the system has given
  /// no pages for them. Any thread may call it, also after the runner was destroyed. Null if memory
  /// is given its pages when it is reserved, as on a GPU.
  std::function<std::int64_t()> untouched_bytes;
  std::shared_ptr<const stream_report> streamed; ///< null: all weights live on the device
  /// Up to this length (tokens), the KV of a sequence depends on its tokens alone and can be
  /// shared; beyond it, the model's rotary frequencies depend on the length. 0: any length.
  std::int32_t shareable_length = 0;
  std::int64_t kv_block_bytes = 0; ///< bytes of one block on the device; 0: blocks cannot be copied
  std::string fingerprint; ///< identifies all that a block's bytes depend on beside its tokens
  /// Whether steps are run by step_runner::begin() and end(), so that a step is launched while the
  /// one before it computes.
  bool runs_ahead = false;
};

} // namespace twill::actors
