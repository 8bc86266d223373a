// square_walk's rounds: the loop over squares, and after a round's the head, tokens and ends.
#include <algorithm>
#include <utility>

#include "actors/detail/executor_failure.hpp"
#include "actors/offload/square_walk.hpp"
#include "models/offload/weight_stream.hpp"

namespace twill::actors {

/// The time since the last square belongs to this one.
void square_walk::book(bool prefill) {
  const auto now = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(now - last_).count();
  (prefill ? report_.prefill_seconds : report_.decode_seconds) += seconds;
  last_ = now;
}

/// Logits and tokens of some pieces that fit one multiplication with the head.
result<nothing> square_walk::score_group(std::span<const piece* const> group) {
  std::vector<models::micro_batch*> batches;
  for (const piece* p : group)
    batches.push_back(p->at);
  const models::offload::span_clock began(options_.timeline);
  auto logits = decoder_.score(batches);
  if (!logits.ok()) return executor_failure(logits.error());
  if (logits.value().rows() == 0) return nothing{};
  const auto& tokens = draw_->tokens(dev_, logits.value());
  began.end(models::offload::lane::compute, decoder_.n_stages(), -1);
  std::size_t row = 0;
  for (const piece* p : group)
    for (block_sequence* s : p->step.drawing) {
      take_token(*s, tokens[row++], options_, blocks_);
      ++report_.output_tokens;
    }
  return nothing{};
}

result<nothing> square_walk::end_round() {
  leave();
  std::vector<const piece*> group;
  std::size_t rows = 0, prefill_rows = 0, all_rows = 0;
  const auto flush = [&]() -> result<nothing> {
    const auto done = group.empty() ? result<nothing>(nothing{}) : score_group(group);
    group.clear();
    rows = 0;
    return done;
  };
  for (const std::int32_t batch : round_) {
    member& m = members_[batch];
    for (const piece& p : m.pieces) {
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
  // The head served prompts and decodes alike: by rows.
  const double before = report_.decode_seconds;
  book(false);
  const double head = report_.decode_seconds - before;
  const double share =
      all_rows == 0 ? 0 : static_cast<double>(prefill_rows) / static_cast<double>(all_rows);
  report_.decode_seconds -= head * share;
  report_.prefill_seconds += head * share;

  for (const std::int32_t batch : round_)
    end_member(batch);
  expect_tokens();
  for (auto& rows_back : prefill_rows_used_)
    prefill_rows_.push_back(std::move(rows_back));
  prefill_rows_used_.clear();
  round_.clear();
  finished_ = 0;
  const traffic now = moved();
  report_.rounds.push_back(
      {report_.total_seconds() - booked_, report_.decode_seconds - booked_decode_,
       now.seconds - booked_moved_.seconds, now.bytes - booked_moved_.bytes, last_});
  booked_ = report_.total_seconds();
  booked_decode_ = report_.decode_seconds;
  booked_moved_ = now;
  if (options_.progress)
    options_.progress(report_.prompt_tokens + report_.output_tokens, total_tokens_);
  return nothing{};
}

square_walk::traffic square_walk::moved() const {
  traffic all;
  if (decoder_.stream() != nullptr) {
    const auto weights = decoder_.stream()->stats();
    all = {weights.moving_seconds, weights.disk_bytes + weights.host_bytes};
  }
  const auto add = [&](const models::offload::transfer_stats& stats) {
    all.seconds += stats.moving_seconds;
    all.bytes += stats.loaded_bytes + stats.stored_bytes;
  };
  if (kv_) add(kv_->stats());
  if (hidden_) add(hidden_->stats());
  return all;
}

/// What the next round embeds, but for the prompts that enter in it.
void square_walk::expect_tokens() {
  std::vector<std::int32_t> tokens;
  for (const std::int32_t batch : round_) {
    const auto stays = members_.find(batch);
    if (stays == members_.end()) continue;
    for (const block_sequence& s : stays->second.sequences)
      if (!s.done) tokens.push_back(s.output->ids.back());
  }
  decoder_.expect(tokens);
}

/// After a round: a micro-batch whose sequences are all done makes room.
void square_walk::end_member(std::int32_t batch) {
  member& m = members_[batch];
  m.pieces.clear();
  if (!std::all_of(m.sequences.begin(), m.sequences.end(),
                   [](const block_sequence& s) { return s.done; }))
    return;
  cursor_.leave(batch);
  if (kv_ != nullptr) kv_->forget(m.place);
  decode_rows_.push_back(std::move(m.decode_rows));
  free_places_.push_back(m.place);
  members_.erase(batch);
}

block_report square_walk::run() {
  last_ = std::chrono::steady_clock::now();
  booked_moved_ = moved();
  while (!report_.stopped && report_.error.empty()) {
    const auto next = cursor_.next();
    if (!next) break;
    auto ran = run_square(*next);
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

} // namespace twill::actors
