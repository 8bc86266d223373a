#include "actors/executor/sequence_states.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <utility>

#include "config/base/assert.hpp"

namespace twill::actors {

bool sequence_states::state::counted() const {
  const auto& p = *spec.sampling;
  return p.repetition_penalty != 1.0f || p.presence_penalty != 0.0f || p.frequency_penalty != 0.0f;
}

void sequence_states::state::count(std::int32_t id, bool output) {
  auto at = std::lower_bound(counts.begin(), counts.end(), id,
                             [](const gpu::token_count& c, std::int32_t x) { return c.id < x; });
  if (at == counts.end() || at->id != id) at = counts.insert(at, {id, 0, 0});
  (output ? at->in_output : at->in_prompt) += 1;
}

/// Bans the last token of each bad word whose other tokens are the end of the output.
void sequence_states::state::ban_bad_words(std::span<const gpu::token_bias> others) {
  draw_biases.assign(others.begin(), others.end());
  const auto output = std::span(tokens).subspan(spec.prompt->size());
  for (const auto& word : *spec.bad_words) {
    const std::size_t before = word.size() - 1;
    if (before > output.size()) continue;
    if (std::equal(word.begin(), word.end() - 1,
                   output.end() - static_cast<std::ptrdiff_t>(before)))
      draw_biases.push_back({word.back(), -std::numeric_limits<float>::infinity()});
  }
}

draw_spec sequence_states::state::draw() {
  draw_spec d;
  d.params = spec.sampling.get();
  d.seed = spec.seed;
  d.counter = n_tokens();
  if (counted()) d.counts = counts;
  const bool early = n_output() < static_cast<std::size_t>(spec.sampling->min_tokens);
  d.biases = early ? early_biases : biases;
  if (spec.bad_words) {
    ban_bad_words(d.biases);
    d.biases = draw_biases;
  }
  if (guard)
    d.mask = mask;
  else if (spec.allowed)
    d.mask = *spec.allowed;
  return d;
}

void sequence_states::open(const open_sequence& opened) {
  state& s = states_[opened.id];
  s = state{};
  s.spec = opened.spec;
  const auto& prompt = *opened.spec.prompt;
  s.tokens.reserve(prompt.size() + static_cast<std::size_t>(std::min(opened.spec.max_new, 1024)));
  s.tokens.assign(prompt.begin(), prompt.end());
  s.tokens.insert(s.tokens.end(), opened.output.begin(), opened.output.end());
  s.blocks = opened.blocks;
  if (s.counted()) {
    for (std::int32_t id : prompt)
      s.count(id, false);
    for (std::int32_t id : opened.output)
      s.count(id, true);
  }
  if (opened.spec.rules) {
    s.guard.emplace(opened.spec.rules);
    s.mask.resize(models::grammar::mask_words(opened.spec.rules->tokens->size()));
    for (const std::int32_t id : opened.output)
      s.no_allowed_token = s.no_allowed_token || !s.guard->accept(id);
    // Only output that does not belong to this request can have reached the grammar's end already.
    s.no_allowed_token = s.no_allowed_token || s.guard->is_over();
  }
  std::map<std::int32_t, float> biases;
  for (const auto& [id, bias] : opened.spec.sampling->logit_bias)
    biases[id] += bias;
  for (const auto& [id, bias] : biases)
    s.biases.push_back({id, bias});
  if (opened.spec.sampling->min_tokens > 0) {
    for (std::int32_t id : *opened.spec.stop_ids)
      biases[id] = -std::numeric_limits<float>::infinity();
    // The end of the grammar ends the output even if the request ignores the model's own end ids.
    if (opened.spec.rules)
      for (std::int32_t id : opened.spec.rules->tokens->end_ids)
        biases[id] = -std::numeric_limits<float>::infinity();
    for (const auto& [id, bias] : biases)
      s.early_biases.push_back({id, bias});
  }
}

void sequence_states::clear() {
  masks_.settle();
  states_.clear();
  departed_.clear();
  n_under_way_ = 0;
}

listed_states sequence_states::list() const {
  listed_states listed;
  for (const auto& [id, s] : states_)
    listed.open.push_back(id);
  for (const sequence_id id : departed_)
    if (!states_.contains(id)) listed.skipped.push_back(id);
  return listed;
}

namespace {
bool opens(const step_plan& plan, sequence_id id) {
  return std::any_of(plan.opens.begin(), plan.opens.end(),
                     [id](const open_sequence& o) { return o.id == id; });
}
} // namespace

bool sequence_states::may_follow(const step_plan& plan) const {
  for (const open_sequence& opened : plan.opens)
    if (opened.spec.scores_prompt() || opened.spec.is_pooled()) return false;
  for (const planned_row& row : plan.rows) {
    if (opens(plan, row.id)) continue;
    const state& s = states_.at(row.id);
    if (s.spec.scores_prompt() || s.spec.is_pooled()) return false;
    if (s.n_drawing > 0 && (s.counted() || s.spec.bad_words || s.guard)) return false;
  }
  return true;
}

void sequence_states::prepare(const step_plan& plan, executor_step& out) {
  TWILL_ASSERT(n_under_way_ < most_under_way, "steps are finished before others are prepared");
  ++n_under_way_;
  newest().drawing.clear();
  newest().scoring.clear();
  newest().pooling.clear();
  newest().skipped.clear();
  masks_.settle(); // the masks of a step that failed before it needed them
  for (sequence_id id : plan.closes) {
    states_.erase(id);
    if (!departed_.empty() && !opens(plan, id)) departed_.erase(id);
  }
  for (const open_sequence& opened : plan.opens)
    open(opened);
  std::size_t at = 0;
  for (const lease_growth& g : plan.grows) {
    auto& blocks = states_.at(g.id).blocks;
    const auto first = plan.blocks.begin() + static_cast<std::ptrdiff_t>(at);
    blocks.insert(blocks.end(), first, first + g.n_blocks);
    at += static_cast<std::size_t>(g.n_blocks);
  }
  out.tokens.clear();
  out.positions.clear();
  out.first_token.assign(1, 0);
  out.kv_lengths.clear();
  out.prompt_lengths.clear();
  out.logit_rows.clear();
  out.draws.clear();
  out.scores.clear();
  out.fed_from.clear();
  in_step_.clear();
  std::vector<mask_filler::task> masked;
  for (const planned_row& row : plan.rows) {
    state& s = states_.at(row.id);
    if (s.finished || (s.n_drawing > 0 && s.is_full()) || departed_.contains(row.id)) {
      newest().skipped.push_back(row.id);
      continue;
    }
    add_row(row, s, out);
    if (row.draws && s.guard && !s.no_allowed_token) masked.push_back({&*s.guard, s.mask});
  }
  if (!out.fed_from.empty()) out.fed_from.resize(out.tokens.size(), -1);
  add_scores(out);
  add_hidden(out);
  fill_tables(in_step_, out);
  out.await_masks = nullptr;
  if (masked.empty()) return;
  masks_.begin(std::move(masked));
  out.await_masks = [this] { masks_.wait(); };
}

/// Rows of logits for scored prompt tokens come after those that are drawn from.
void sequence_states::add_scores(executor_step& out) {
  for (const scored_row& row : newest().scoring) {
    out.logit_rows.push_back(row.logit_row);
    out.scores.push_back({row.sequence->tokens[static_cast<std::size_t>(row.position)],
                          row.sequence->spec.prompt_logprobs});
  }
}

/// Records the rows of the sequence whose hidden states are asked for: its last row, or all rows.
void sequence_states::add_pooled(const planned_row& row, state& s, const executor_step& out) {
  const bool all = s.spec.pooling == pooling::mean;
  if (!all && !row.draws) return;
  const auto end = static_cast<std::int32_t>(out.tokens.size());
  const std::int32_t n = all ? row.n_tokens : 1;
  newest().pooling.push_back({&s, end - n, n, row.draws});
}

/// Rows of hidden states come after those of logits.
void sequence_states::add_hidden(executor_step& out) {
  out.n_hidden = 0;
  for (const pooled_rows& rows : newest().pooling) {
    for (std::int32_t i = 0; i < rows.n_rows; ++i)
      out.logit_rows.push_back(rows.first_row + i);
    out.n_hidden += rows.n_rows;
  }
}

void sequence_states::add_row(const planned_row& row, state& s, executor_step& out) {
  const auto end = static_cast<std::size_t>(row.first_position + row.n_tokens);
  TWILL_ASSERT(end <= s.n_tokens() && s.n_drawing <= 1,
               "a row must cover tokens that are known or being drawn");
  if (s.spec.scores_prompt()) {
    const auto last = std::min(row.first_position + row.n_tokens,
                               static_cast<std::int32_t>(s.spec.prompt->size()) - 1);
    const auto batch_row = static_cast<std::int32_t>(out.tokens.size()) - row.first_position;
    for (std::int32_t p = row.first_position; p < last; ++p)
      newest().scoring.push_back({&s, row.id, p + 1, batch_row + p});
  }
  const auto first = s.tokens.begin() + row.first_position;
  if (end > s.tokens.size()) {
    out.tokens.insert(out.tokens.end(), first, s.tokens.end());
    out.fed_from.resize(out.tokens.size(), -1);
    out.tokens.push_back(0); // a placeholder for the token that only the device has yet
    out.fed_from.push_back(s.draw_index);
  } else {
    out.tokens.insert(out.tokens.end(), first, first + row.n_tokens);
  }
  for (std::int32_t i = 0; i < row.n_tokens; ++i)
    out.positions.push_back(row.first_position + i);
  out.first_token.push_back(static_cast<std::int32_t>(out.tokens.size()));
  out.kv_lengths.push_back(row.first_position + row.n_tokens);
  out.prompt_lengths.push_back(static_cast<std::int32_t>(s.spec.prompt->size()));
  in_step_.push_back(&s);
  if (s.spec.is_pooled()) {
    add_pooled(row, s, out);
  } else if (row.draws) {
    out.logit_rows.push_back(static_cast<std::int32_t>(out.tokens.size()) - 1);
    out.draws.push_back(s.draw());
    s.draw_index = static_cast<std::int32_t>(out.draws.size()) - 1;
  }
  if (!row.draws) return;
  ++s.n_drawing;
  newest().drawing.push_back(&row);
}

void sequence_states::fill_tables(const std::vector<const state*>& rows, executor_step& out) {
  std::size_t widest = 0;
  for (const state* s : rows)
    widest = std::max(widest, s->blocks.size());
  out.max_blocks = static_cast<std::int32_t>(widest);
  out.block_table.assign(rows.size() * widest, 0);
  for (std::size_t i = 0; i < rows.size(); ++i)
    std::copy(rows[i]->blocks.begin(), rows[i]->blocks.end(),
              out.block_table.begin() + static_cast<std::ptrdiff_t>(i * widest));
}

void sequence_states::finish(const step_plan& plan, const step_samples& drawn, step_result& out) {
  TWILL_ASSERT(n_under_way_ > 0, "a step is prepared before it is finished");
  const prepared_step& step = steps_[oldest_];
  oldest_ = (oldest_ + 1) % most_under_way;
  --n_under_way_;
  out.generation = plan.generation;
  out.number = plan.number;
  out.skipped = step.skipped;
  if (!step.pooling.empty()) finish_pooled(step, drawn, out);
  out.drawn.reserve(step.drawing.size());
  std::size_t next = 0;
  std::int32_t next_pooled = 0;
  for (const planned_row* row : step.drawing) {
    state& s = states_.at(row->id);
    --s.n_drawing;
    drawn_token d;
    d.id = row->id;
    if (s.spec.is_pooled()) {
      s.finished = true;
      d.first_top = next_pooled++;
      out.drawn.push_back(d);
      continue;
    }
    const std::size_t i = next++;
    // the step before drew its end, which was not known when this step was prepared
    if (s.finished) continue;
    d.token = drawn.tokens[i];
    s.tokens.push_back(d.token);
    if (s.counted()) s.count(d.token, true);
    const auto& stops = *s.spec.stop_ids;
    d.stopped = std::binary_search(stops.begin(), stops.end(), d.token);
    if (s.guard) {
      d.no_allowed_token = s.no_allowed_token || !s.guard->accept(d.token);
      d.stopped = d.stopped || s.guard->is_over();
    }
    s.finished = d.stopped || d.no_allowed_token || (s.n_drawing == 0 && s.is_full());
    if (const std::int32_t n_top = s.spec.sampling->logprobs; n_top >= 0) {
      d.logprob = drawn.logprobs[i];
      d.first_top = static_cast<std::int32_t>(out.top.size());
      d.n_top = std::min(n_top, drawn.max_top);
      const std::size_t row = i * static_cast<std::size_t>(drawn.max_top);
      for (std::int32_t k = 0; k < d.n_top; ++k) {
        const std::size_t at = row + static_cast<std::size_t>(k);
        out.top.emplace_back(drawn.top_ids[at], drawn.top_logprobs[at]);
      }
    }
    out.drawn.push_back(d);
  }
  finish_scores(step, drawn, out);
}

/// Adds the embeddings that this step has completed to the result. The sum of hidden states, of
/// which the mean is made, is accumulated token by token in double, so that it does not depend on
/// how a prompt was cut into steps.
void sequence_states::finish_pooled(const prepared_step& step, const step_samples& drawn,
                                    step_result& out) {
  const auto size = static_cast<std::size_t>(drawn.hidden_size);
  const float* hidden = drawn.hidden.data();
  for (const pooled_rows& rows : step.pooling) {
    state& s = *rows.sequence;
    auto values = std::make_shared<std::vector<float>>();
    if (s.spec.pooling == pooling::last) {
      values->assign(hidden, hidden + size);
    } else {
      s.sum.resize(size);
      for (std::int32_t r = 0; r < rows.n_rows; ++r)
        for (std::size_t i = 0; i < size; ++i)
          s.sum[i] += double{hidden[static_cast<std::size_t>(r) * size + i]};
      values->reserve(rows.ends ? size : 0);
      for (std::size_t i = 0; rows.ends && i < size; ++i)
        values->push_back(static_cast<float>(s.sum[i] / static_cast<double>(s.tokens.size())));
    }
    hidden += static_cast<std::size_t>(rows.n_rows) * size;
    if (rows.ends) out.pooled.push_back(std::move(values));
  }
}

void sequence_states::finish_scores(const prepared_step& step, const step_samples& drawn,
                                    step_result& out) {
  for (std::size_t i = 0; i < step.scoring.size(); ++i) {
    scored_token scored;
    scored.id = step.scoring[i].id;
    scored.position = step.scoring[i].position;
    scored.logprob = drawn.score_logprobs[i];
    scored.first_top = static_cast<std::int32_t>(out.top.size());
    scored.n_top = std::min(step.scoring[i].sequence->spec.prompt_logprobs, drawn.score_max_top);
    const std::size_t row = i * static_cast<std::size_t>(drawn.score_max_top);
    for (std::int32_t k = 0; k < scored.n_top; ++k) {
      const std::size_t at = row + static_cast<std::size_t>(k);
      out.top.emplace_back(drawn.score_top_ids[at], drawn.score_top_logprobs[at]);
    }
    out.scored.push_back(scored);
  }
}

} // namespace twill::actors
