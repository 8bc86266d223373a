// The part of schedule_executor that runs rounds: the loop over tasks and, after the tasks of a
// round, the head, the drawing of tokens and the removal of finished micro-batches.
#include <algorithm>
#include <utility>

#include "models/decoder/gpu_error.hpp"
#include "models/offload/job/schedule_executor.hpp"
#include "models/offload/streams/weight_stream.hpp"

namespace twill::models::offload {

/// Adds the time since the last call to the prefill time or the decode time.
void schedule_executor::account(bool prefill) {
  const auto now = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(now - last_).count();
  (prefill ? report_.prefill_seconds : report_.decode_seconds) += seconds;
  last_ = now;
}

/// Computes logits and tokens of some chunks whose rows fit one multiplication with the head.
result<nothing> schedule_executor::score_group(std::span<const chunk* const> group) {
  std::vector<micro_batch*> batches;
  for (const chunk* p : group)
    batches.push_back(p->at);
  const span_clock began(options_.timeline);
  auto logits = decoder_.score(batches);
  if (!logits.ok()) return logits.error();
  if (logits.value().rows() == 0) return nothing{};
  const auto& tokens = sampler_->tokens(dev_, logits.value());
  began.end(lane::compute, decoder_.n_stages(), -1);
  std::size_t row = 0;
  for (const chunk* p : group)
    for (job_sequence* s : p->step.drawing) {
      take_token(*s, tokens[row++], options_, blocks_);
      ++report_.output_tokens;
    }
  return nothing{};
}

result<nothing> schedule_executor::end_round() {
  leave();
  std::vector<const chunk*> group;
  std::size_t rows = 0, prefill_rows = 0, all_rows = 0;
  const auto flush = [&]() -> result<nothing> {
    const auto done = group.empty() ? result<nothing>(nothing{}) : score_group(group);
    group.clear();
    rows = 0;
    return done;
  };
  for (const std::int32_t batch : round_) {
    micro_batch_state& m = micro_batches_[batch];
    for (const chunk& p : m.chunks) {
      const std::size_t n = p.step.logit_rows.size();
      if (rows + n > static_cast<std::size_t>(loaded_.max_logit_rows))
        if (auto done = flush(); !done.ok()) return done;
      group.push_back(&p);
      rows += n;
      all_rows += n;
      if (m.prefill) {
        prefill_rows += n;
        report_.prompt_tokens += static_cast<std::int64_t>(p.step.tokens.size());
      }
    }
  }
  if (auto done = flush(); !done.ok()) return done;
  report_.prefill_drawn += static_cast<std::int64_t>(prefill_rows);
  // The head's time is shared among prompts and decodes by their rows.
  const double before = report_.decode_seconds;
  account(false);
  const double head = report_.decode_seconds - before;
  const double share =
      all_rows == 0 ? 0 : static_cast<double>(prefill_rows) / static_cast<double>(all_rows);
  report_.decode_seconds -= head * share;
  report_.prefill_seconds += head * share;

  for (const std::int32_t batch : round_)
    end_batch(batch);
  expect_tokens();
  for (auto& rows_back : prefill_rows_used_)
    prefill_rows_.push_back(std::move(rows_back));
  prefill_rows_used_.clear();
  round_.clear();
  finished_ = 0;
  const traffic now = moved();
  report_.rounds.push_back(
      {report_.total_seconds() - accounted_, report_.decode_seconds - accounted_decode_,
       now.seconds - accounted_moved_.seconds, now.bytes - accounted_moved_.bytes, last_});
  accounted_ = report_.total_seconds();
  accounted_decode_ = report_.decode_seconds;
  accounted_moved_ = now;
  if (options_.progress)
    options_.progress(report_.prompt_tokens + report_.output_tokens, total_tokens_);
  return nothing{};
}

schedule_executor::traffic schedule_executor::moved() const {
  traffic all;
  if (decoder_.stream() != nullptr) {
    const auto weights = decoder_.stream()->stats();
    all = {weights.moving_seconds, weights.disk_bytes + weights.host_bytes};
  }
  const auto add = [&](const transfer_stats& stats) {
    all.seconds += stats.moving_seconds;
    all.bytes += stats.loaded_bytes + stats.stored_bytes;
  };
  if (kv_) add(kv_->stats());
  if (hidden_) add(hidden_->stats());
  return all;
}

/// Announces to the decoder the tokens that the next round will embed, except the prompts of
/// micro-batches that enter in that round.
void schedule_executor::expect_tokens() {
  std::vector<std::int32_t> tokens;
  for (const std::int32_t batch : round_) {
    const auto stays = micro_batches_.find(batch);
    if (stays == micro_batches_.end()) continue;
    for (const job_sequence& s : stays->second.sequences)
      if (!s.done) tokens.push_back(s.output->ids.back());
  }
  decoder_.prefetch(tokens);
}

/// Removes a micro-batch whose sequences are all done.
void schedule_executor::end_batch(std::int32_t batch) {
  micro_batch_state& m = micro_batches_[batch];
  m.chunks.clear();
  if (!std::all_of(m.sequences.begin(), m.sequences.end(),
                   [](const job_sequence& s) { return s.done; }))
    return;
  cursor_.leave(batch);
  if (kv_ != nullptr) kv_->forget(m.index);
  decode_rows_.push_back(std::move(m.decode_rows));
  free_indices_.push_back(m.index);
  micro_batches_.erase(batch);
}

job_report schedule_executor::run() {
  last_ = std::chrono::steady_clock::now();
  accounted_moved_ = moved();
  while (!report_.stopped && report_.error.empty()) {
    const auto next = cursor_.next();
    if (!next) break;
    auto ran = run_task(*next);
    const bool round_is_over = next->layer + 1 == decoder_.n_stages() && finished_ == round_.size();
    if (ran.ok() && round_is_over) ran = end_round();
    if (!ran.ok()) report_.error = ran.detail();
    report_.stopped = asked_to_stop();
  }
  leave();
  if (kv_) report_.kv_moved = kv_->stats();
  if (hidden_) report_.hidden_moved = hidden_->stats();
  return std::move(report_);
}

} // namespace twill::models::offload
