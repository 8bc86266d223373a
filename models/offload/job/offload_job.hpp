// offload_job: a batch job over a model that may be larger than its device: prompts in, tokens out,
// by a block schedule or as one continuous batch.
//
// Threads: everything on the caller's thread, which owns the device; weights and KV travel on
// threads of their own. Greedy. What a sequence's tokens are depends on nothing but its prompt (see
// gpu/linear/linear.hpp): the schedules differ in time and memory alone. Failures are values;
// outputs keep what was generated before a failure or a stop.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gpu/device.hpp"
#include "models/decoder/decoder.hpp"
#include "models/errc.hpp"
#include "models/offload/plan/block_schedule.hpp"
#include "models/offload/streams/hidden_stream.hpp"
#include "models/offload/streams/kv_stream.hpp"
#include "models/offload/streams/span_recorder.hpp"

namespace twill::models::offload {

struct job_prompt {
  std::vector<std::int32_t> ids; ///< at least one
  std::int32_t max_new = 1;      ///< at least 1
};

enum class job_finish : std::uint8_t {
  length,      ///< as many tokens as were asked for
  stop,        ///< an end id, which is not part of the output
  interrupted, ///< the run ended first
};

struct job_output {
  std::vector<std::int32_t> ids;
  job_finish finish = job_finish::interrupted;
};

enum class job_mode : std::uint8_t { zigzag, diagonal, fused };

const char* name_of(job_mode mode);

struct job_options {
  job_mode mode = job_mode::zigzag;
  std::int32_t batch_size = 4;       ///< sequences of a micro-batch
  std::int32_t n_batches = 1;        ///< micro-batches at work at once
  std::int32_t stagger = 1;          ///< diagonal: rounds from one micro-batch's entry to the next
  std::int32_t step_tokens = 512;    ///< rows of one forward pass; longer prefills go in chunks
  std::vector<std::int32_t> end_ids; ///< empty: nothing ends a sequence early
  std::function<bool()> stop;        ///< asked between tasks; true: leave off; may be null
  /// Tokens done (prompt and output) of all; may be null.
  std::function<void(std::int64_t done, std::int64_t total)> progress;
  span_recorder* timeline = nullptr;
  /// Not all on the device: KV of these layers passes through it. Not for fused runs.
  shares kv;
  /// Of micro-batches: where hidden states rest between tasks. Not for fused runs.
  shares hidden;
  bool four_bit_kv = false;    ///< of those layers, on their way and at home; loses precision
  bool attend_on_host = false; ///< KV in host memory is used there, see kv_stream_options
};

/// A sweep over the layers.
struct job_round {
  double seconds = 0;
  double decode_seconds = 0; ///< of these
  /// With a transfer of weights under way, of KV and of hidden states, added up.
  double moving_seconds = 0;
  std::int64_t moved_bytes = 0;                ///< transfers between tiers that were asked for
  std::chrono::steady_clock::time_point ended; ///< `seconds` after the round before, or later
};

struct job_report {
  std::vector<job_output> outputs; // (n_prompts)
  double prefill_seconds = 0;      ///< time of tasks that compute prompts
  double decode_seconds = 0;
  std::int64_t prompt_tokens = 0; ///< computed
  std::int64_t output_tokens = 0; ///< drawn
  std::int64_t prefill_drawn = 0; ///< of these, by prefills
  transfer_stats kv_moved, hidden_moved;
  std::vector<job_round> rounds;
  bool stopped = false;
  std::string error; ///< what ended the run early; the decoder is to be destroyed then
  double total_seconds() const { return prefill_seconds + decode_seconds; }
};

/// What a run of these prompts needs of its decoder.
struct job_needs {
  std::int32_t n_blocks = 0; ///< of KV, at the schedule's peak
  std::int32_t max_step_tokens = 0;
  std::int32_t max_sequences = 0;
  std::int32_t max_logit_rows = 0;
  std::int32_t max_context_tokens = 0;
  std::int32_t prefill_chunks = 0;   ///< at once, of max_step_tokens rows each
  std::int32_t chunks_per_batch = 1; ///< micro-batch, at most
};

/// `options.step_tokens`, or fewer where no step of these prompts has as many rows.
std::int32_t step_tokens_for(const std::vector<job_prompt>& prompts, const job_options& options);

job_needs needs_of(const std::vector<job_prompt>& prompts, const job_options& options,
                   std::int32_t block_tokens);

/// How KV of these prompts travels; what the decoder must leave out of its arena follows from it.
kv_stream_options kv_options_of(const model_spec& spec, const decoder_options& options,
                                const std::vector<job_prompt>& prompts, const job_options& run);

hidden_options hidden_options_of(const model_spec& spec, const std::vector<job_prompt>& prompts,
                                 const job_options& run, const job_needs& needs);

/// Runs all prompts to their end, or to the first failure of a step, which the report then names.
/// `decoder` was loaded with at least what needs_of() says. Fails when the device has no room for
/// the micro-batches' activations.
result<job_report> run_offload_job(gpu::device& dev, decoder& decoder,
                                   const decoder_options& loaded,
                                   const std::vector<job_prompt>& prompts,
                                   const job_options& options);

} // namespace twill::models::offload
