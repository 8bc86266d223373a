#include "actors/offload/block_run.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "actors/detail/executor_failure.hpp"
#include "actors/offload/block_batch.hpp"
#include "actors/offload/block_walk.hpp"
#include "actors/offload/fused_run.hpp"
#include "actors/offload/greedy_draw.hpp"

namespace twill::actors {
namespace {

using clock = std::chrono::steady_clock;

/// A forward step of some of a micro-batch's rows, with activations of its own.
struct piece {
  block_step step;
  models::micro_batch* at = nullptr;
};

struct member {
  std::vector<block_sequence> sequences;
  std::vector<piece> pieces; ///< of the round under way
  std::unique_ptr<models::micro_batch> decode_rows;
  bool prefill = true;     ///< the round under way computes its prompt
  std::int64_t round = 0;  ///< the last one it took part in
  std::int32_t passed = 0; ///< layers of that round that it is through
  std::int32_t place = -1; ///< among those alive, for KV that travels
  staged_ranges staged;    ///< of the round under way
};

/// Walks the squares of a schedule.
class square_walk {
public:
  square_walk(gpu::device& dev, models::decoder& decoder, const models::decoder_options& loaded,
              const std::vector<block_prompt>& prompts, const block_options& options)
      : dev_(dev), decoder_(decoder), loaded_(loaded), prompts_(prompts), options_(options),
        blocks_(loaded.n_blocks), cursor_(shape_of(prompts, options, decoder.spec().n_layers)) {
    report_.outputs.resize(prompts.size());
    for (const block_prompt& p : prompts)
      total_tokens_ += static_cast<std::int64_t>(p.ids.size()) + p.max_new;
  }

  result<nothing> prepare(const block_needs& needs);
  block_report run();

private:
  result<nothing> begin(member& m, std::int32_t batch, std::int32_t token);
  result<nothing> build_pieces(member& m);
  result<nothing> run_pieces(member& m, std::int32_t layer);
  void load_ahead();
  result<nothing> enter(std::int32_t layer);
  void leave();
  result<nothing> run_square(const square& at);
  result<nothing> end_round();
  result<nothing> score_group(std::span<const piece* const> group);
  void end_member(std::int32_t batch);
  void book(bool prefill);
  bool asked_to_stop() const { return options_.stop && options_.stop(); }

  gpu::device& dev_;
  models::decoder& decoder_;
  const models::decoder_options& loaded_;
  const std::vector<block_prompt>& prompts_;
  const block_options& options_;
  block_list blocks_;
  schedule_cursor cursor_;
  block_report report_;
  std::optional<greedy_draw> draw_;
  std::map<std::int32_t, member> members_;
  std::vector<std::unique_ptr<models::micro_batch>> prefill_rows_; ///< free ones
  std::vector<std::unique_ptr<models::micro_batch>> prefill_rows_used_;
  std::vector<std::unique_ptr<models::micro_batch>> decode_rows_; ///< free ones
  std::vector<std::int32_t> round_; ///< micro-batches of the round, in order
  std::size_t finished_layers_ = 0; ///< of them, how many passed the last layer
  std::int32_t layer_ = -1;         ///< entered
  std::vector<std::int32_t> free_places_;
  std::unique_ptr<models::offload::kv_stream> kv_; ///< null: all KV is in the arena
  std::int32_t kv_buffers_ = 0;
  clock::time_point last_ = clock::now();
  double booked_ = 0, booked_decode_ = 0; ///< before the round under way
  std::int64_t total_tokens_ = 0;
};

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

/// The time since the last square belongs to this one.
void square_walk::book(bool prefill) {
  const auto now = clock::now();
  const double seconds = std::chrono::duration<double>(now - last_).count();
  (prefill ? report_.prefill_seconds : report_.decode_seconds) += seconds;
  last_ = now;
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
  began.end(models::offload::lane::compute, decoder_.spec().n_layers, -1);
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
  for (auto& rows_back : prefill_rows_used_)
    prefill_rows_.push_back(std::move(rows_back));
  prefill_rows_used_.clear();
  round_.clear();
  finished_layers_ = 0;
  ++report_.rounds;
  report_.round_seconds.push_back(report_.total_seconds() - booked_);
  report_.round_decode_seconds.push_back(report_.decode_seconds - booked_decode_);
  booked_ = report_.total_seconds();
  booked_decode_ = report_.decode_seconds;
  if (options_.progress)
    options_.progress(report_.prompt_tokens + report_.output_tokens, total_tokens_);
  return nothing{};
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
  last_ = clock::now();
  while (!report_.stopped && report_.error.empty()) {
    const auto next = cursor_.next();
    if (!next) break;
    auto ran = run_square(*next);
    const bool round_is_over =
        next->layer + 1 == decoder_.spec().n_layers && finished_layers_ == round_.size();
    if (ran.ok() && round_is_over) ran = end_round();
    if (!ran.ok()) report_.error = ran.detail();
    report_.stopped = asked_to_stop();
  }
  leave();
  if (kv_) report_.kv_moved = kv_->stats();
  return std::move(report_);
}

} // namespace

result<block_report> run_block(gpu::device& dev, models::decoder& decoder,
                               const models::decoder_options& loaded,
                               const std::vector<block_prompt>& prompts,
                               const block_options& options) {
  decoder.record_to(options.timeline);
  if (options.mode == block_mode::fused && options.kv.device < 100)
    return failure{errc::executor_failed,
                   std::string("a fused run must have all KV on the device")};
  if (options.mode == block_mode::fused) return run_fused(dev, decoder, loaded, prompts, options);
  square_walk walk(dev, decoder, loaded, prompts, options);
  if (auto ready = walk.prepare(needs_of(prompts, options, loaded.block_tokens)); !ready.ok())
    return ready.error();
  return walk.run();
}

} // namespace twill::actors
