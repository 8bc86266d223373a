#include "models/offload/job/schedule_executor.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "models/decoder/gpu_error.hpp"

namespace twill::models::offload {

result<nothing> schedule_executor::prepare(const job_needs& needs) {
  auto draw = greedy_sampler::create(dev_, loaded_.max_logit_rows);
  if (!draw.ok()) return from_gpu(draw.error());
  sampler_.emplace(std::move(draw).value());
  const auto make = [&](std::int32_t n, std::int32_t rows,
                        std::vector<std::unique_ptr<micro_batch>>& to) -> result<nothing> {
    for (std::int32_t i = 0; i < n; ++i) {
      auto batch =
          decoder_.make_micro_batch(rows, options_.batch_size, options_.hidden.device == 100);
      if (!batch.ok()) return batch.error();
      to.push_back(std::move(batch).value());
    }
    return nothing{};
  };
  if (auto created = make(needs.prefill_chunks, options_.step_tokens, prefill_rows_); !created.ok())
    return created;
  const auto kv = kv_options_of(decoder_.spec(), loaded_, prompts_, options_);
  for (std::int32_t i = 0; i < kv.n_batches; ++i)
    free_indices_.push_back(i);
  if (options_.kv.device < 100) {
    auto stream = kv_stream::create(dev_, kv, loaded_.offload);
    if (!stream.ok()) return stream.error();
    kv_ = std::move(stream).value();
    kv_->record_to(options_.timeline);
    const auto staged = kv_stream::staged_layers(kv);
    const bool any = std::find(staged.begin(), staged.end(), true) != staged.end();
    kv_buffers_ = any ? kv.buffers : 0; // a small share may leave every layer on the device
    numbering_ = {kv.sequences, kv.shape.n_blocks};
  }
  if (options_.hidden.device < 100) {
    const auto hidden = hidden_options_of(decoder_.spec(), prompts_, options_, needs);
    auto stream = hidden_stream::create(dev_, hidden, loaded_.offload);
    if (!stream.ok()) return stream.error();
    hidden_ = std::move(stream).value();
    hidden_->record_to(options_.timeline);
    hidden_buffers_ = hidden.buffers;
  }
  return make(kv.n_batches, options_.batch_size, decode_rows_);
}

std::int64_t schedule_executor::hidden_bytes(const chunk& p) const {
  return static_cast<std::int64_t>(p.step.tokens.size() * sizeof(float)) *
         decoder_.spec().hidden_size;
}

/// Loads the KV that the next tasks need, as long as staging buffers on the device are idle. KV for
/// a task of the next round (sweep over the layers) can be loaded only after the micro-batch has
/// passed that layer in this round, because this round's task writes KV that the next round's task
/// reads.
void schedule_executor::load_ahead() {
  schedule_cursor ahead = cursor_;
  const auto travels = [&](const schedule_task& s) {
    const std::int32_t layer = decoder_.kv_layer_of(s.layer);
    return layer >= 0 && kv_->staged(layer);
  };
  const auto next_with_kv = [&] {
    auto next = ahead.next();
    while (next && !travels(*next))
      next = ahead.next();
    return next;
  };
  for (std::int32_t n = 1; n < kv_buffers_; ++n) {
    const auto next = next_with_kv();
    if (!next) return;
    const std::int32_t layer = decoder_.kv_layer_of(next->layer);
    const auto found = micro_batches_.find(next->batch);
    if (found == micro_batches_.end())
      continue; // a micro-batch that is about to enter has no KV yet
    const micro_batch_state& m = found->second;
    const bool in_this_round = ahead.rounds() == cursor_.rounds();
    const bool begun = m.round == cursor_.rounds();
    if (!in_this_round && (!begun || next->layer >= m.passed)) return;
    const auto blocks = [&] { return ranges_of(m.sequences, loaded_.block_tokens).used; };
    kv_->load_ahead(layer, m.index, in_this_round && begun ? m.staged.used : blocks());
  }
}

/// Loads the hidden states for the next tasks of this round whose micro-batches have passed an
/// earlier layer.
void schedule_executor::load_hidden_ahead() {
  schedule_cursor ahead = cursor_;
  for (std::int32_t n = 1; n < hidden_buffers_;) {
    const auto next = ahead.next();
    if (!next || ahead.rounds() != cursor_.rounds()) return;
    const auto found = micro_batches_.find(next->batch);
    if (next->layer == 0 || found == micro_batches_.end()) continue;
    const micro_batch_state& m = found->second;
    for (std::size_t i = 0; i < m.chunks.size() && n < hidden_buffers_; ++i, ++n)
      hidden_->load_ahead({m.index, static_cast<std::int32_t>(i)}, hidden_bytes(m.chunks[i]));
  }
}

/// Puts a chunk's hidden states on the device, where they stay until rest_hidden().
result<nothing> schedule_executor::bring_hidden(micro_batch_state& m, std::size_t chunk,
                                                bool anew) {
  if (hidden_ == nullptr) return nothing{};
  const auto& p = m.chunks[chunk];
  auto state = hidden_->acquire({m.index, static_cast<std::int32_t>(chunk)}, hidden_bytes(p), anew);
  if (!state.ok()) return state.error();
  decoder_.place_hidden(*p.at, state.value());
  return nothing{};
}

void schedule_executor::rest_hidden(micro_batch_state& m, std::size_t chunk, bool dropped) {
  if (hidden_ == nullptr) return;
  hidden_->release({m.index, static_cast<std::int32_t>(chunk)}, hidden_bytes(m.chunks[chunk]),
                   dropped);
}

result<nothing> schedule_executor::run_chunks(micro_batch_state& m, std::int32_t stage) {
  gpu::kv_layer layer_kv;
  const std::int32_t layer = decoder_.kv_layer_of(stage);
  const bool staged = kv_ != nullptr && layer >= 0 && kv_->staged(layer);
  if (staged) {
    auto acquired = kv_->acquire(layer, m.index, m.staged.used);
    if (!acquired.ok()) return acquired.error();
    layer_kv = acquired.value();
  }
  if (kv_ != nullptr) load_ahead();
  if (hidden_ != nullptr) hidden_->at_layer(stage);
  for (std::size_t i = 0; i < m.chunks.size(); ++i) {
    if (auto brought = bring_hidden(m, i, false); !brought.ok()) return brought;
    if (hidden_ != nullptr && i + 1 == m.chunks.size()) load_hidden_ahead();
    decoder_.run(*m.chunks[i].at, stage, staged ? &layer_kv : nullptr);
    rest_hidden(m, i, stage + 1 == decoder_.n_stages());
  }
  if (staged) kv_->release(layer, m.index, m.staged.written);
  return nothing{};
}

result<nothing> schedule_executor::build_chunks(micro_batch_state& m) {
  if (kv_ != nullptr) m.staged = ranges_of(m.sequences, loaded_.block_tokens);
  step_builder step(blocks_, loaded_.block_tokens, numbering_);
  const auto close = [&] {
    chunk p;
    p.step = step.finish();
    if (m.prefill) {
      prefill_rows_used_.push_back(std::move(prefill_rows_.back()));
      prefill_rows_.pop_back();
      p.at = prefill_rows_used_.back().get();
    } else {
      p.at = m.decode_rows.get();
    }
    m.chunks.push_back(std::move(p));
  };
  const std::int32_t most_rows = m.prefill ? options_.step_tokens : options_.batch_size;
  for (job_sequence& s : m.sequences) {
    if (s.done) continue;
    do {
      const std::int32_t left = s.in_prefill() ? s.prompt_length() - s.length : 1;
      if (!step.add(s, std::min(left, most_rows - step.rows())))
        return failure{errc::out_of_memory, std::string("the block's KV is full")};
      if (step.rows() == most_rows) close();
    } while (s.in_prefill());
  }
  if (step.rows() > 0) close();
  return nothing{};
}

result<nothing> schedule_executor::begin(micro_batch_state& m, std::int32_t batch,
                                         std::int32_t token) {
  m.prefill = token == 0;
  m.round = cursor_.rounds();
  m.passed = 0;
  if (m.prefill) {
    m.decode_rows = std::move(decode_rows_.back());
    decode_rows_.pop_back();
    m.index = free_indices_.back();
    free_indices_.pop_back();
    const auto prompts = batch_of(prompts_, batch, options_.batch_size);
    const auto first = static_cast<std::size_t>(prompts.data() - prompts_.data());
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      job_sequence s;
      s.prompt = &prompts[i];
      s.output = &report_.outputs[first + i];
      s.index = static_cast<std::int32_t>(i);
      m.sequences.push_back(std::move(s));
    }
  }
  if (auto built = build_chunks(m); !built.ok()) return built;
  for (std::size_t i = 0; i < m.chunks.size(); ++i) {
    if (auto brought = bring_hidden(m, i, true); !brought.ok()) return brought;
    if (auto begun = decoder_.begin(*m.chunks[i].at, m.chunks[i].step); !begun.ok())
      return begun.error();
    rest_hidden(m, i, false);
  }
  return nothing{};
}

result<nothing> schedule_executor::enter(std::int32_t stage) {
  if (stage == stage_) return nothing{};
  leave();
  if (auto entered = decoder_.enter(stage); !entered.ok()) return entered.error();
  stage_ = stage;
  return nothing{};
}

void schedule_executor::leave() {
  if (stage_ >= 0) decoder_.leave(stage_);
  stage_ = -1;
}

result<nothing> schedule_executor::run_task(const schedule_task& at) {
  if (round_.empty()) decoder_.begin_pass(true);
  micro_batch_state& m = micro_batches_[at.batch];
  if (at.layer == 0) {
    round_.push_back(at.batch);
    if (auto begun = begin(m, at.batch, at.token); !begun.ok()) return begun;
  }
  if (auto entered = enter(at.layer); !entered.ok()) return entered;
  const span_clock began(options_.timeline);
  if (auto ran = run_chunks(m, at.layer); !ran.ok()) return ran;
  began.end(lane::compute, at.layer, at.batch);
  account(m.prefill);
  m.passed = at.layer + 1;
  if (at.layer + 1 == decoder_.n_stages()) ++finished_;
  return nothing{};
}

} // namespace twill::models::offload
