// request_load: the load of many requests that twill-bench puts on a batcher (actors/batcher). It
// has the settings, the limits and the number of KV blocks that fit them, the requests, and made-up
// results of steps, since no model computes any.
//
// Only one thread at a time may use an object.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "actors/batcher/batcher_limits.hpp"
#include "actors/messages.hpp"

namespace twill::bench {

/// Tokens of a KV block.
inline constexpr std::int32_t load_block_tokens = 16;

/// A load of equally long prompts.
struct load_settings {
  std::int32_t queued = 10000;
  std::int32_t running = 1000;
  std::int32_t prompt_tokens = 512;
  std::int32_t output_tokens = 256;
  bool few_blocks = false; ///< KV blocks, not max_running, limit how many requests run
  bool prefix_cache = true;
};

/// How many KV blocks the load's allocator has.
std::int32_t blocks_for(const load_settings& settings);
/// The limits of the load's batcher.
actors::batcher_limits limits_for(const load_settings& settings);

/// Makes the requests. No two of them have the same prompt, and the lengths of their outputs
/// differ, so that requests do not all end at once.
class request_maker {
public:
  explicit request_maker(const load_settings& settings);
  /// The next request; ids begin with 1.
  actors::submit_prompt next();

private:
  std::int32_t prompt_tokens_, output_tokens_;
  std::shared_ptr<const config::sampling_params> sampling_;
  actors::token_ids stop_ids_;
  actors::request_id made_ = 0;
};

/// Makes up the results of steps: every row that draws gets a token, until its output is complete.
class result_maker {
public:
  /// The result of `plan`. Every plan must be passed once, in the order of the steps.
  actors::step_result result_of(const actors::step_plan& plan);

private:
  std::unordered_map<actors::sequence_id, std::int32_t> outputs_; ///< tokens that are left to draw
};

} // namespace twill::bench
