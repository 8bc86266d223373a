#include "models/offload/job/continuous_run.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <list>
#include <utility>

#include "models/decoder/gpu_error.hpp"
#include "models/offload/job/greedy_sampler.hpp"
#include "models/offload/job/micro_batch_state.hpp"
#include "models/offload/streams/weight_stream.hpp"

namespace twill::models::offload {
namespace {

using clock = std::chrono::steady_clock;

class fused_walk {
public:
  fused_walk(const decoder_options& loaded, const std::vector<job_prompt>& prompts,
             const job_options& options)
      : loaded_(loaded), options_(options), blocks_(loaded.n_blocks) {
    report_.outputs.resize(prompts.size());
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      job_sequence s;
      s.prompt = &prompts[i];
      s.output = &report_.outputs[i];
      waiting_.push_back(std::move(s));
      total_tokens_ += static_cast<std::int64_t>(prompts[i].ids.size()) + prompts[i].max_new;
    }
  }

  result<job_report> run(gpu::device& dev, decoder& decoder) {
    auto draw = greedy_sampler::create(dev, loaded_.max_logit_rows);
    if (!draw.ok()) return from_gpu(draw.error());
    stream_ = decoder.stream();
    accounted_ = moved();
    while (!waiting_.empty() || !running_.empty()) {
      if (report_.stopped = options_.stop && options_.stop(); report_.stopped) break;
      const auto began = clock::now();
      auto step = next_step();
      if (!step.ok()) return ended_by(step.error());
      const span_clock compute(options_.timeline);
      auto logits = decoder.forward(step.value());
      if (!logits.ok()) return ended_by(logits.error());
      if (logits.value().rows() > 0)
        take(step.value(), draw.value().tokens(dev, logits.value()));
      else
        dev.fence();
      compute.end(lane::compute, 0);
      account(step.value(), began, clock::now());
    }
    return std::move(report_);
  }

private:
  job_report ended_by(const failure& f) {
    report_.error = f.detail;
    return std::move(report_);
  }

  /// Takes decodes first, then prompts that have begun, then new prompts.
  result<job_step> next_step() {
    step_builder step(blocks_, loaded_.block_tokens, {});
    prompt_rows_ = 0;
    const auto full = failure{errc::out_of_memory, std::string("the batch's KV is full")};
    for (job_sequence& s : running_)
      if (!s.in_prefill() && !step.add(s, 1)) return full;
    const auto most = static_cast<std::size_t>(loaded_.max_sequences);
    while (running_.size() < most && !waiting_.empty()) {
      running_.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
    for (job_sequence& s : running_) {
      const std::int32_t room = options_.step_tokens - step.rows();
      if (!s.in_prefill() || room <= 0) continue;
      const std::int32_t n = std::min(room, s.prompt_length() - s.length);
      if (!step.add(s, n)) return full;
      prompt_rows_ += n;
    }
    return step.finish();
  }

  void take(const job_step& step, const std::vector<std::int32_t>& tokens) {
    for (std::size_t i = 0; i < step.drawing.size(); ++i) {
      if (step.drawing[i]->output->ids.empty()) ++report_.prefill_drawn;
      take_token(*step.drawing[i], tokens[i], options_, blocks_);
      ++report_.output_tokens;
    }
    running_.remove_if([](const job_sequence& s) { return s.done; });
  }

  ring_stats moved() const { return stream_ != nullptr ? stream_->stats() : ring_stats{}; }

  /// Shares the step's time among prompts and decodes by their rows.
  void account(const job_step& step, clock::time_point began, clock::time_point ended) {
    const double seconds = std::chrono::duration<double>(ended - began).count();
    const double share =
        static_cast<double>(prompt_rows_) / static_cast<double>(step.tokens.size());
    report_.prefill_seconds += seconds * share;
    report_.decode_seconds += seconds * (1 - share);
    report_.prompt_tokens += prompt_rows_;
    const ring_stats now = moved();
    const auto bytes = [](const ring_stats& s) { return s.disk_bytes + s.host_bytes; };
    report_.rounds.push_back({seconds, seconds * (1 - share),
                              now.moving_seconds - accounted_.moving_seconds,
                              bytes(now) - bytes(accounted_), ended});
    accounted_ = now;
    if (options_.progress)
      options_.progress(report_.prompt_tokens + report_.output_tokens, total_tokens_);
  }

  const decoder_options& loaded_;
  const job_options& options_;
  free_kv_blocks blocks_;
  job_report report_;
  std::deque<job_sequence> waiting_;
  std::list<job_sequence> running_; ///< a list, since steps point to its elements
  std::int64_t prompt_rows_ = 0;
  const weight_stream* stream_ = nullptr; ///< the decoder's stream of weights, while the decoder
                                          ///< exists
  ring_stats accounted_;                  ///< traffic before the current step
  std::int64_t total_tokens_ = 0;
};

} // namespace

result<job_report> run_continuous(gpu::device& dev, decoder& decoder, const decoder_options& loaded,
                                  const std::vector<job_prompt>& prompts,
                                  const job_options& options) {
  return fused_walk(loaded, prompts, options).run(dev, decoder);
}

} // namespace twill::models::offload
