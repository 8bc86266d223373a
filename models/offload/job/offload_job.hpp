// offload_job: runs an offline job: generates tokens for a list of prompts with a model that may be
// larger than its device, either by a block schedule or as one continuous batch.
//
// Threads: all calls run on the caller's thread, which owns the device; weights and KV are
// transferred by I/O threads. Sampling is greedy. The tokens of a sequence depend on its prompt
// alone (see gpu/linear/linear.hpp), so schedules differ in time and memory only. Failures are
// returned as values. After a failure or a stop, the outputs have the tokens generated so far.
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
  stop,        ///< the sequence drew an end id, which is not part of the output
  interrupted, ///< the job ended before the sequence did
};

struct job_output {
  std::vector<std::int32_t> ids;
  job_finish finish = job_finish::interrupted;
};

enum class job_mode : std::uint8_t { zigzag, diagonal, fused };

const char* name_of(job_mode mode);

struct job_options {
  job_mode mode = job_mode::zigzag;
  std::int32_t batch_size = 4; ///< sequences of a micro-batch
  std::int32_t n_batches = 1;  ///< micro-batches alive at once
  std::int32_t stagger = 1;    ///< diagonal only: rounds from one micro-batch's entry to the next
  std::int32_t step_tokens =
      512; ///< rows of one forward pass; longer prefills are computed in chunks
  std::vector<std::int32_t> end_ids; ///< ids that end a sequence; may be empty
  std::function<bool()> stop;        ///< called between tasks; true ends the job; may be null
  /// Called with the number of tokens (prompts and outputs) done so far; may be null.
  std::function<void(std::int64_t done, std::int64_t total)> progress;
  span_recorder* timeline = nullptr;
  /// Which shares of the layers' KV are kept in which tier. job_mode::fused, which runs one
  /// continuous batch, needs all KV on the device.
  shares kv;
  /// Which shares of the micro-batches' hidden states are kept in which tier between tasks of the
  /// schedule. job_mode::fused needs all of them on the device.
  shares hidden;
  bool four_bit_kv = false;    ///< KV off the device is packed to 4 bits, which loses precision
  bool attend_on_host = false; ///< attention reads the host tier's KV in place, see
                               ///< kv_stream_options
};

/// One sweep over the layers.
struct job_round {
  double seconds = 0;
  double decode_seconds = 0; ///< the part of `seconds` that was spent on decode tasks
  /// Seconds with a transfer of weights under way, plus those of KV, plus those of hidden states.
  double moving_seconds = 0;
  std::int64_t moved_bytes = 0;                ///< bytes of transfers between tiers that were begun
  std::chrono::steady_clock::time_point ended; ///< when the round ended
};

struct job_report {
  std::vector<job_output> outputs; // (n_prompts)
  double prefill_seconds = 0;      ///< time of tasks that compute prompts
  double decode_seconds = 0;
  std::int64_t prompt_tokens = 0; ///< prompt tokens computed
  std::int64_t output_tokens = 0; ///< tokens drawn
  std::int64_t prefill_drawn = 0; ///< the output tokens that prefills drew
  transfer_stats kv_moved, hidden_moved;
  std::vector<job_round> rounds;
  bool stopped = false;
  std::string error; ///< the failure that ended the job early, or empty; after a failure the
                     ///< decoder must be destroyed
  double total_seconds() const { return prefill_seconds + decode_seconds; }
};

/// The sizes for which a job's decoder must be loaded.
struct job_needs {
  std::int32_t n_blocks = 0; ///< KV blocks at the schedule's peak
  std::int32_t max_step_tokens = 0;
  std::int32_t max_sequences = 0;
  std::int32_t max_logit_rows = 0;
  std::int32_t max_context_tokens = 0;
  std::int32_t prefill_chunks =
      0; ///< most prefill chunks that exist at once, of max_step_tokens rows each
  std::int32_t chunks_per_batch = 1; ///< most chunks of one micro-batch
};

/// The most rows of a step: `options.step_tokens`, or fewer if no step of these prompts has that
/// many rows.
std::int32_t step_tokens_for(const std::vector<job_prompt>& prompts, const job_options& options);

job_needs needs_of(const std::vector<job_prompt>& prompts, const job_options& options,
                   std::int32_t block_tokens);

/// The options of the kv_stream for these prompts. The stream keeps the KV of some layers, which
/// must be marked in decoder_options::kv_staged, so that the decoder's arena leaves them out.
kv_stream_options kv_options_of(const model_spec& spec, const decoder_options& options,
                                const std::vector<job_prompt>& prompts, const job_options& run);

hidden_options hidden_options_of(const model_spec& spec, const std::vector<job_prompt>& prompts,
                                 const job_options& run, const job_needs& needs);

/// Runs all prompts to their end, or to the first step that fails; job_report::error then has that
/// failure. The decoder must be loaded with at least the sizes that needs_of() returns. Fails if
/// the device has no room for the activations of the micro-batches.
result<job_report> run_offload_job(gpu::device& dev, decoder& decoder,
                                   const decoder_options& loaded,
                                   const std::vector<job_prompt>& prompts,
                                   const job_options& options);

} // namespace twill::models::offload
