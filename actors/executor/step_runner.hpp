// step_runner: what the executor runs steps with. Production uses decoder_runner, over models/ and
// gpu/; tests script their own.
//
// Threads: a runner is made, used and destroyed on the executor's thread. It fails by a result or
// by an exception; after either the executor destroys it and asks for a new one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "actors/port/engine_port.hpp"
#include "config/sampling.hpp"
#include "gpu/sampling/sample.hpp"
#include "models/decoder/step_batch.hpp"
#include "models/offload/plan/serving_plan.hpp"
#include "models/offload/streams/disk_store.hpp"

namespace twill::models {
struct model;
namespace offload {
class tier_resources;
}
} // namespace twill::models

namespace twill::actors {

/// What a runner serves, known once it has loaded.
struct runner_info {
  std::shared_ptr<const models::model> model;
  std::string device; ///< for log lines: "host (AMD EPYC, Kokkos 3.4.1 OpenMP, 16 threads)"
  std::int32_t n_blocks = 0;
  std::int32_t block_tokens = 0;
  std::int32_t max_context_tokens = 0; ///< prompt + output per sequence
  std::int32_t max_step_tokens = models::offload::default_step_tokens;
  std::int32_t mixed_prompt_tokens = 0; ///< see plan_limits; 0: no plan has set it
  std::int32_t max_logit_rows = 256;    ///< draws and scored prompt tokens of a step
  std::int64_t memory_used_bytes = 0;   ///< reserved on the device
  std::int64_t weight_bytes = 0;        ///< of these, by weights
  bool memory_is_host = false;          ///< device memory is this process's own
  std::int64_t outside_bytes = 0;       ///< of a GPU, taken beside memory_used_bytes
  /// The bytes of `memory_used_bytes` that were never touched, for any thread, also after the
  /// runner has gone; null where all are taken when they are reserved.
  std::function<std::int64_t()> untouched_bytes;
  std::shared_ptr<const stream_report> streamed; ///< null: all weights live on the device
  /// Sequences up to this length have KV that depends on their tokens alone; 0: all have.
  std::int32_t shareable_length = 0;
  std::int64_t kv_block_bytes = 0; ///< of one block on the device; 0: blocks cannot be copied
  std::string fingerprint;         ///< all that a block's bytes depend on beside its tokens
  /// Steps are run by begin() and end(), so that one is launched while the one before it computes.
  bool runs_ahead = false;
  /// Opens the disk tier in place of a file, for tests.
  std::function<models::result<std::unique_ptr<models::offload::disk_store>>()> open_kv_store;
};

/// How one row of logits is drawn from. Spans and pointers are valid during run() only.
struct draw_spec {
  const config::sampling_params* params = nullptr;
  std::uint64_t seed = 0;
  std::uint64_t counter = 0;                ///< position of the drawn token in its sequence
  std::span<const gpu::token_count> counts; ///< empty unless a penalty is on
  std::span<const gpu::token_bias> biases;  ///< one entry per id, bans of bad words besides
  /// Which tokens may be drawn, a bit for each; empty: all. Filled once await_masks() has returned.
  std::span<const std::uint32_t> mask;
};

/// A prompt token whose log-probability is read from a row of logits.
struct score_spec {
  std::int32_t token = 0;
  std::int32_t n_top = 0; ///< alternatives to report
};

/// A step and what is drawn from its logits; the vectors are reused from step to step.
struct executor_step : models::step_batch {
  // The wanted rows (logit_rows) are those of `draws`, then those of `scores`, then n_hidden ones
  // whose hidden states are wanted.
  std::vector<draw_spec> draws;
  std::vector<score_spec> scores;
  /// Returns once the masks of `draws` are filled: to be called after the forward pass, beside
  /// which they are filled, and before the draws. Null when no draw has a mask that waits.
  std::function<void()> await_masks;
};

/// What was drawn; the vectors are reused from step to step.
struct step_samples {
  std::vector<std::int32_t> tokens; // (n_draws)
  std::vector<float> logprobs;      // (n_draws), where log-probabilities were asked for
  std::int32_t max_top = 0;
  std::vector<std::int32_t> top_ids; // (n_draws, max_top)
  std::vector<float> top_logprobs;   // (n_draws, max_top)

  std::vector<float> score_logprobs; // (n_scores)
  std::int32_t score_max_top = 0;
  std::vector<std::int32_t> score_top_ids; // (n_scores, score_max_top)
  std::vector<float> score_top_logprobs;   // (n_scores, score_max_top)

  std::int32_t hidden_size = 0;
  std::vector<float> hidden; // (n_hidden, hidden_size)
};

class step_runner {
public:
  virtual ~step_runner() = default;
  /// Before load(): where streamed weights get their bytes from.
  virtual void use_tiers(std::shared_ptr<models::offload::tier_resources> /*resources*/) {}
  virtual result<runner_info> load() = 0;
  virtual result<nothing> run(const executor_step& batch, step_samples& out) = 0;

  // With runner_info::runs_ahead. Steps with `scores` or hidden states go through run(), while no
  // other is under way.
  /// Launches a step, at most one before which has not ended; step_batch::fed_from counts in the
  /// draws of that one. Any thread calls `done` when end() would not wait.
  virtual result<nothing> begin(const executor_step& /*batch*/, std::function<void()> /*done*/) {
    return one_at_a_time();
  }
  /// Waits for the oldest step that has begun, and tells what it drew.
  virtual result<nothing> end(step_samples& /*out*/) { return one_at_a_time(); }
  virtual std::int64_t memory_used_bytes() const = 0;
  /// After a failure: whether no runner of this process can use the device any more.
  virtual bool device_is_lost() { return false; }
  /// What streamed weights did in the last step; null where none are, and after most steps.
  virtual std::shared_ptr<const stream_report> take_stream_report() { return nullptr; }
  /// Copies of one KV block's runner_info::kv_block_bytes between device and host, between steps.
  virtual result<nothing> save_block(std::int32_t /*block*/, void* /*to*/) { return no_tiers(); }
  virtual result<nothing> load_block(std::int32_t /*block*/, const void* /*from*/) {
    return no_tiers();
  }

private:
  static result<nothing> one_at_a_time() {
    return failure{errc::executor_failed, std::string("this runner runs one step at a time")};
  }
  static result<nothing> no_tiers() {
    return failure{errc::executor_failed,
                   std::string("this runner's KV blocks stay on its device")};
  }
};

/// Called on the executor's thread for each load.
using runner_factory = std::function<std::unique_ptr<step_runner>()>;

} // namespace twill::actors
