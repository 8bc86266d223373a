// schedule_executor: runs the tasks of a block schedule (plan/block_schedule.hpp) on the device.
// Each task runs one micro-batch through one layer; a round is one sweep over the layers. The
// micro-batches of a round that have passed the last layer then go through the output head
// together. `schedule_task::layer` is here the number of a decoder stage, which is a layer or half
// of a layer.
//
// An executor runs one job, on the thread that owns the device. It owns the activations of the
// micro-batches and the streams of KV and hidden states.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "models/offload/job/greedy_sampler.hpp"
#include "models/offload/job/micro_batch_state.hpp"
#include "models/offload/job/micro_batches.hpp"

namespace twill::models::offload {

class schedule_executor {
public:
  schedule_executor(gpu::device& dev, decoder& decoder, const decoder_options& loaded,
                    const std::vector<job_prompt>& prompts, const job_options& options)
      : dev_(dev), decoder_(decoder), loaded_(loaded), prompts_(prompts), options_(options),
        blocks_(loaded.n_blocks), cursor_(shape_of(prompts, options, decoder.n_stages())) {
    report_.outputs.resize(prompts.size());
    for (const job_prompt& p : prompts)
      total_tokens_ += static_cast<std::int64_t>(p.ids.size()) + p.max_new;
  }

  result<nothing> prepare(const job_needs& needs);
  job_report run();

private:
  /// Some rows of a micro-batch's step. Each chunk has its own activations.
  struct chunk {
    job_step step;
    micro_batch* at = nullptr;
  };

  struct micro_batch_state {
    std::vector<job_sequence> sequences;
    std::vector<chunk> chunks; ///< of the current round
    std::unique_ptr<micro_batch> decode_rows;
    bool prefill = true;     ///< the current round computes the micro-batch's prompts
    std::int64_t round = 0;  ///< the last round in which the micro-batch took part
    std::int32_t passed = 0; ///< stages of `round` that the micro-batch has passed
    std::int32_t index = -1; ///< index among the micro-batches alive, by which the streams number
                             ///< their contents
    staged_ranges staged;    ///< of the current round
  };

  result<nothing> begin(micro_batch_state& m, std::int32_t batch, std::int32_t token);
  result<nothing> build_chunks(micro_batch_state& m);
  result<nothing> run_chunks(micro_batch_state& m, std::int32_t stage);
  result<nothing> bring_hidden(micro_batch_state& m, std::size_t chunk, bool anew);
  void rest_hidden(micro_batch_state& m, std::size_t chunk, bool dropped);
  void load_ahead();
  void load_hidden_ahead();
  std::int64_t hidden_bytes(const chunk& p) const;
  result<nothing> enter(std::int32_t stage);
  void leave();
  result<nothing> run_task(const schedule_task& at);
  result<nothing> end_round();
  result<nothing> score_group(std::span<const chunk* const> group);
  void end_batch(std::int32_t batch);
  void expect_tokens();
  void account(bool prefill);
  struct traffic {
    double seconds = 0; ///< see job_round::moving_seconds
    std::int64_t bytes = 0;
  };
  traffic moved() const; ///< so far
  bool asked_to_stop() const { return options_.stop && options_.stop(); }

  gpu::device& dev_;
  decoder& decoder_;
  const decoder_options& loaded_;
  const std::vector<job_prompt>& prompts_;
  const job_options& options_;
  free_kv_blocks blocks_;
  schedule_cursor cursor_;
  job_report report_;
  std::optional<greedy_sampler> sampler_;
  std::map<std::int32_t, micro_batch_state> micro_batches_;
  std::vector<std::unique_ptr<micro_batch>> prefill_rows_; ///< not in use
  std::vector<std::unique_ptr<micro_batch>> prefill_rows_used_;
  std::vector<std::unique_ptr<micro_batch>> decode_rows_; ///< not in use
  std::vector<std::int32_t> round_;                       ///< micro-batches of the round, in order
  std::size_t finished_ = 0; ///< how many micro-batches of `round_` have passed the last stage
  std::int32_t stage_ = -1;  ///< the stage that was entered; -1: none
  std::vector<std::int32_t> free_indices_;
  std::unique_ptr<kv_stream> kv_; ///< null if all KV is in the arena
  std::int32_t kv_buffers_ = 0;
  staged_numbering numbering_;
  std::unique_ptr<hidden_stream> hidden_; ///< null if chunks have memory of their own
  std::int32_t hidden_buffers_ = 0;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  double accounted_ = 0, accounted_decode_ = 0; ///< time of the rounds before the current one
  traffic accounted_moved_;                     ///< traffic of the rounds before the current one
  std::int64_t total_tokens_ = 0;
};

} // namespace twill::models::offload
