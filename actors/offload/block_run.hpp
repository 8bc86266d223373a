// block_run: a batch job over a model that may be larger than its device: prompts in, tokens out,
// by a block schedule or as one fused batch.
//
// Threads: everything on the caller's thread, which owns the device; weights and KV travel on
// threads of their own. Greedy. What a sequence's tokens are depends on nothing but its prompt (see
// gpu/linear/linear.hpp): the schedules differ in time and memory alone. Failures are values; outputs
// keep what was generated before a failure or a stop.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/policy/block_schedule.hpp"
#include "actors/port/engine_port.hpp"
#include "gpu/device.hpp"
#include "models/decoder/decoder.hpp"
#include "models/offload/hidden_stream.hpp"
#include "models/offload/kv_stream.hpp"
#include "models/offload/timeline.hpp"

namespace twill::actors {

struct block_prompt {
  std::vector<std::int32_t> ids; ///< at least one
  std::int32_t max_new = 1;      ///< at least 1
};

enum class block_finish : std::uint8_t {
  length,      ///< as many tokens as were asked for
  stop,        ///< an end id, which is not part of the output
  interrupted, ///< the run ended first
};

struct block_output {
  std::vector<std::int32_t> ids;
  block_finish finish = block_finish::interrupted;
};

enum class block_mode : std::uint8_t { zigzag, diagonal, fused };

const char* name_of(block_mode mode);

struct block_options {
  block_mode mode = block_mode::zigzag;
  std::int32_t batch_size = 4;       ///< sequences of a micro-batch
  std::int32_t n_batches = 1;        ///< micro-batches at work at once
  std::int32_t stagger = 1;          ///< diagonal: rounds from one micro-batch's entry to the next
  std::int32_t step_tokens = 512;    ///< rows of one forward pass; longer prefills go in pieces
  std::vector<std::int32_t> end_ids; ///< empty: nothing ends a sequence early
  std::function<bool()> stop;        ///< asked between squares; true: leave off; may be null
  /// Tokens done (prompt and output) of all; may be null.
  std::function<void(std::int64_t done, std::int64_t total)> progress;
  models::offload::timeline* timeline = nullptr;
  /// Not all on the device: KV of these layers passes through it. Not for fused runs.
  models::offload::shares kv;
  /// Of micro-batches: where hidden states rest between squares. Not for fused runs.
  models::offload::shares hidden;
  bool four_bit_kv = false;    ///< of those layers, on their way and at home; loses precision
  bool attend_at_home = false; ///< KV in host memory is used there, see kv_stream_options
};

/// A sweep over the layers.
struct block_round {
  double seconds = 0;
  double decode_seconds = 0; ///< of these
  /// With a transfer of weights under way, of KV and of hidden states, added up.
  double moving_seconds = 0;
  std::int64_t moved_bytes = 0;                ///< transfers between tiers that were asked for
  std::chrono::steady_clock::time_point ended; ///< `seconds` after the round before, or later
};

struct block_report {
  std::vector<block_output> outputs; // (n_prompts)
  double prefill_seconds = 0;        ///< time of squares that compute prompts
  double decode_seconds = 0;
  std::int64_t prompt_tokens = 0; ///< computed
  std::int64_t output_tokens = 0; ///< drawn
  std::int64_t prefill_drawn = 0; ///< of these, by prefills
  models::offload::transfer_stats kv_moved, hidden_moved;
  std::vector<block_round> rounds;
  bool stopped = false;
  std::string error; ///< what ended the run early; the decoder is to be destroyed then
  double total_seconds() const { return prefill_seconds + decode_seconds; }
};

/// What a run of these prompts needs of its decoder.
struct block_needs {
  std::int32_t n_blocks = 0; ///< of KV, at the schedule's peak
  std::int32_t max_step_tokens = 0;
  std::int32_t max_sequences = 0;
  std::int32_t max_logit_rows = 0;
  std::int32_t max_context_tokens = 0;
  std::int32_t prefill_pieces = 0; ///< at once, of max_step_tokens rows each
  std::int32_t pieces_of_one = 1;  ///< micro-batch, at most
};

/// `options.step_tokens`, or fewer where no step of these prompts has as many rows.
std::int32_t step_tokens_for(const std::vector<block_prompt>& prompts,
                             const block_options& options);

block_needs needs_of(const std::vector<block_prompt>& prompts, const block_options& options,
                     std::int32_t block_tokens);

/// How KV of these prompts travels; what the decoder must leave out of its arena follows from it.
models::offload::kv_stream_options kv_options_of(const models::model_spec& spec,
                                                 const models::decoder_options& options,
                                                 const std::vector<block_prompt>& prompts,
                                                 const block_options& run);

models::offload::hidden_options hidden_options_of(const models::model_spec& spec,
                                                  const std::vector<block_prompt>& prompts,
                                                  const block_options& run,
                                                  const block_needs& needs);

/// Runs all prompts to their end, or to the first failure of a step, which the report then names.
/// `decoder` was loaded with at least what needs_of() says. Fails when the device has no room for
/// the micro-batches' activations.
result<block_report> run_block(gpu::device& dev, models::decoder& decoder,
                               const models::decoder_options& loaded,
                               const std::vector<block_prompt>& prompts,
                               const block_options& options);

} // namespace twill::actors
