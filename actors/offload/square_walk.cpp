#include "actors/offload/square_walk.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "actors/detail/executor_failure.hpp"

namespace twill::actors {

result<nothing> square_walk::prepare(const block_needs& needs) {
  auto draw = greedy_draw::create(dev_, loaded_.max_logit_rows);
  if (!draw.ok()) return executor_failure(draw.error());
  draw_.emplace(std::move(draw).value());
  const auto make = [&](std::int32_t n, std::int32_t rows,
                        std::vector<std::unique_ptr<models::micro_batch>>& to) -> result<nothing> {
    for (std::int32_t i = 0; i < n; ++i) {
      auto made = decoder_.make_micro_batch(rows, options_.batch_size);
      if (!made.ok()) return executor_failure(made.error());
      to.push_back(std::move(made).value());
    }
    return nothing{};
  };
  if (auto made = make(needs.prefill_pieces, options_.step_tokens, prefill_rows_); !made.ok())
    return made;
  const auto kv = kv_options_of(decoder_.spec(), loaded_, prompts_, options_);
  for (std::int32_t i = 0; i < kv.n_batches; ++i)
    free_places_.push_back(i);
  if (options_.kv.device < 100) {
    auto stream = models::offload::kv_stream::create(dev_, kv, loaded_.offload);
    if (!stream.ok()) return executor_failure(stream.error());
    kv_ = std::move(stream).value();
    kv_->record_to(options_.timeline);
    kv_buffers_ = kv.buffers;
  }
  return make(kv.n_batches, options_.batch_size, decode_rows_);
}

/// Loads what the squares after this one need, as far as buffers are free. A square of the next
/// round can be loaded once its layer is passed in this one, and wrote what the next one reads.
void square_walk::load_ahead() {
  schedule_cursor ahead = cursor_;
  for (std::int32_t n = 1; n < kv_buffers_; ++n) {
    const auto next = ahead.next();
    if (!next) return;
    const auto found = members_.find(next->batch);
    if (found == members_.end()) continue; // it enters: there is nothing yet
    member& m = found->second;
    if (ahead.rounds() != cursor_.rounds()) {
      if (m.round != cursor_.rounds() || next->layer >= m.passed) return;
      if (kv_->staged(next->layer))
        kv_->load_ahead(next->layer, m.place, ranges_of(m.sequences, loaded_.block_tokens).used);
      continue;
    }
    if (next->layer == 0) m.staged = ranges_of(m.sequences, loaded_.block_tokens);
    if (kv_->staged(next->layer)) kv_->load_ahead(next->layer, m.place, m.staged.used);
  }
}

result<nothing> square_walk::run_pieces(member& m, std::int32_t layer) {
  if (kv_ == nullptr || !kv_->staged(layer)) {
    for (piece& p : m.pieces)
      decoder_.run_layer(*p.at, layer);
    return nothing{};
  }
  auto staged = kv_->acquire(layer, m.place, m.staged.used);
  if (!staged.ok()) return executor_failure(staged.error());
  load_ahead();
  for (piece& p : m.pieces)
    decoder_.run_layer(*p.at, layer, &staged.value());
  kv_->release(layer, m.place, m.staged.written);
  return nothing{};
}

result<nothing> square_walk::build_pieces(member& m) {
  if (kv_ != nullptr) m.staged = ranges_of(m.sequences, loaded_.block_tokens);
  step_builder step(blocks_, loaded_.block_tokens, kv_ != nullptr ? options_.batch_size : 0);
  const auto close = [&] {
    piece p;
    p.step = step.finish();
    if (m.prefill) {
      prefill_rows_used_.push_back(std::move(prefill_rows_.back()));
      prefill_rows_.pop_back();
      p.at = prefill_rows_used_.back().get();
    } else {
      p.at = m.decode_rows.get();
    }
    m.pieces.push_back(std::move(p));
  };
  const std::int32_t most_rows = m.prefill ? options_.step_tokens : options_.batch_size;
  for (block_sequence& s : m.sequences) {
    if (s.done) continue;
    do {
      const std::int32_t left = s.in_prefill() ? s.prompt_length() - s.length : 1;
      if (!step.add(s, std::min(left, most_rows - step.rows())))
        return failure{errc::executor_failed, std::string("the block's KV is full")};
      if (step.rows() == most_rows) close();
    } while (s.in_prefill());
  }
  if (step.rows() > 0) close();
  return nothing{};
}

result<nothing> square_walk::begin(member& m, std::int32_t batch, std::int32_t token) {
  m.prefill = token == 0;
  m.round = cursor_.rounds();
  m.passed = 0;
  if (m.prefill) {
    m.decode_rows = std::move(decode_rows_.back());
    decode_rows_.pop_back();
    m.place = free_places_.back();
    free_places_.pop_back();
    const auto prompts = batch_of(prompts_, batch, options_.batch_size);
    const auto first = static_cast<std::size_t>(prompts.data() - prompts_.data());
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      block_sequence s;
      s.prompt = &prompts[i];
      s.output = &report_.outputs[first + i];
      s.place = static_cast<std::int32_t>(i);
      m.sequences.push_back(std::move(s));
    }
  }
  if (auto built = build_pieces(m); !built.ok()) return built;
  for (piece& p : m.pieces)
    if (auto begun = decoder_.begin(*p.at, p.step.input()); !begun.ok())
      return executor_failure(begun.error());
  return nothing{};
}

result<nothing> square_walk::enter(std::int32_t layer) {
  if (layer == layer_) return nothing{};
  leave();
  if (auto there = decoder_.enter_layer(layer); !there.ok()) return executor_failure(there.error());
  layer_ = layer;
  return nothing{};
}

void square_walk::leave() {
  if (layer_ >= 0) decoder_.leave_layer(layer_);
  layer_ = -1;
}

result<nothing> square_walk::run_square(const square& at) {
  if (round_.empty()) decoder_.begin_pass(true);
  member& m = members_[at.batch];
  if (at.layer == 0) {
    round_.push_back(at.batch);
    if (auto begun = begin(m, at.batch, at.token); !begun.ok()) return begun;
  }
  if (auto there = enter(at.layer); !there.ok()) return there;
  const models::offload::span_clock began(options_.timeline);
  if (auto ran = run_pieces(m, at.layer); !ran.ok()) return ran;
  began.end(models::offload::lane::compute, at.layer, at.batch);
  book(m.prefill);
  m.passed = at.layer + 1;
  if (at.layer + 1 == decoder_.spec().n_layers) ++finished_layers_;
  return nothing{};
}

} // namespace twill::actors
