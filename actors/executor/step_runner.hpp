// step_runner: the interface through which the executor runs steps. The program uses
// decoder_runner, which uses models/ and gpu/; tests have runners of their own.
//
// Threads: a runner is created, used and destroyed on the executor's thread. It fails by a result
// or by an exception; after either, the executor destroys it and creates a new one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "actors/executor/runner_info.hpp"
#include "actors/port/engine_port.hpp"
#include "config/sampling.hpp"
#include "gpu/sampling/sample.hpp"
#include "models/decoder/step_batch.hpp"

namespace twill::models::offload {
class tier_resources;
}

namespace twill::actors {

/// How a token is drawn from one row of logits. Spans and pointers are valid during run() only.
struct draw_spec {
  const config::sampling_params* params = nullptr;
  std::uint64_t seed = 0;
  std::uint64_t counter = 0;                ///< position of the drawn token in its sequence
  std::span<const gpu::token_count> counts; ///< empty unless a penalty is on
  /// one entry for each biased id, then one for each ban of a bad word
  std::span<const gpu::token_bias> biases;
  /// A bitmap of the tokens that may be drawn; empty: all. Filled once await_masks() has returned.
  std::span<const std::uint32_t> mask;
};

/// A prompt token whose log-probability is computed from a row of logits.
struct score_spec {
  std::int32_t token = 0;
  std::int32_t n_top = 0; ///< alternatives to report
};

/// A step and the draws from its logits. The vectors are reused from step to step.
struct executor_step : models::step_batch {
  // step_batch::logit_rows lists the rows of `draws`, then those of `scores`, then n_hidden rows
  // whose hidden states are asked for.
  std::vector<draw_spec> draws;
  std::vector<score_spec> scores;
  /// Returns once the masks of `draws` (bitmaps of the tokens that may be drawn) are filled. Masks
  /// are filled in parallel with the forward pass, so this must be called after it and before the
  /// draws. Null if no draw waits for a mask.
  std::function<void()> await_masks;
};

/// The results of a step. The vectors are reused from step to step.
struct step_samples {
  std::vector<std::int32_t> tokens; // (n_draws)
  std::vector<float> logprobs;      // (n_draws), if log-probabilities were asked for
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
  /// Called before load(): the source of the bytes of streamed weights.
  virtual void use_tiers(std::shared_ptr<models::offload::tier_resources> /*resources*/) {}
  virtual result<runner_info> load() = 0;
  virtual result<nothing> run(const executor_step& batch, step_samples& out) = 0;

  // begin() and end() are used with runner_info::runs_ahead. Steps with `scores` or hidden states
  // go through run(), while no other step is under way.
  /// Launches a step. At most one earlier step may still be under way; step_batch::fed_from has
  /// indexes of that step's draws. `done` is called, on any thread, as soon as end() would return
  /// this step's results without waiting.
  virtual result<nothing> begin(const executor_step& /*batch*/, std::function<void()> /*done*/) {
    return one_at_a_time();
  }
  /// Waits for the oldest step that has begun, and returns its results.
  virtual result<nothing> end(step_samples& /*out*/) { return one_at_a_time(); }
  virtual std::int64_t memory_used_bytes() const = 0;
  /// Called after a failure: whether no runner of this process can use the device any more.
  virtual bool device_is_lost() { return false; }
  /// A report about the streaming of weights in the last step. Null if no weights are streamed or
  /// if the last report is too recent, as it is after most steps.
  virtual std::shared_ptr<const stream_report> take_stream_report() { return nullptr; }
  /// Copies one KV block (runner_info::kv_block_bytes) between device and host. Called between
  /// steps.
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

/// Creates a runner. Called on the executor's thread for each load.
using runner_factory = std::function<std::unique_ptr<step_runner>()>;

} // namespace twill::actors
