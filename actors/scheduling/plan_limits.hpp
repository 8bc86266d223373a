// plan_limits: the sizes within which the scheduler plans steps.
#pragma once

#include <cstdint>

namespace twill::actors {

struct plan_limits {
  std::int32_t max_step_tokens = 512;
  std::int32_t max_running = 256; ///< lowered to max_step_tokens if that is less
  std::int32_t block_tokens = 16;
  bool prefix_cache = false; ///< a sequence without blocks is admitted only with a prefix_hit
  /// The most prompt tokens in a step that also decodes; 0: as many as fit.
  std::int32_t mixed_prompt_tokens = 0;
  std::int32_t max_logit_rows = 256; ///< rows of logits in one step; at least max_running
  bool copies_blocks = false;        ///< the executor can copy one block to another

  /// The number of blocks that hold this many tokens.
  std::int32_t blocks_for(std::int32_t tokens) const {
    return (tokens + block_tokens - 1) / block_tokens;
  }
};

} // namespace twill::actors
