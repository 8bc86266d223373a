#include "actors/executor/sequence_states.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>

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

draw_spec sequence_states::state::draw() const {
  draw_spec d;
  d.params = spec.sampling.get();
  d.seed = spec.seed;
  d.counter = tokens.size();
  if (counted()) d.counts = counts;
  const bool early = n_output() < static_cast<std::size_t>(spec.sampling->min_tokens);
  d.biases = early ? early_biases : biases;
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
  std::map<std::int32_t, float> biases;
  for (const auto& [id, bias] : opened.spec.sampling->logit_bias)
    biases[id] += bias;
  for (const auto& [id, bias] : biases)
    s.biases.push_back({id, bias});
  if (opened.spec.sampling->min_tokens > 0) {
    for (std::int32_t id : *opened.spec.stop_ids)
      biases[id] = -std::numeric_limits<float>::infinity();
    for (const auto& [id, bias] : biases)
      s.early_biases.push_back({id, bias});
  }
}

void sequence_states::prepare(const step_plan& plan, executor_step& out) {
  for (sequence_id id : plan.closes)
    states_.erase(id);
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
  in_step_.clear();
  drawing_.clear();
  for (const planned_row& row : plan.rows) {
    const state& s = states_.at(row.id);
    if (!s.finished) add_row(row, s, out);
  }
  fill_tables(in_step_, out);
}

void sequence_states::add_row(const planned_row& row, const state& s, executor_step& out) {
  TWILL_ASSERT(static_cast<std::size_t>(row.first_position + row.n_tokens) <= s.tokens.size(),
               "a row must cover known tokens only");
  const auto first = s.tokens.begin() + row.first_position;
  out.tokens.insert(out.tokens.end(), first, first + row.n_tokens);
  for (std::int32_t i = 0; i < row.n_tokens; ++i)
    out.positions.push_back(row.first_position + i);
  out.first_token.push_back(static_cast<std::int32_t>(out.tokens.size()));
  out.kv_lengths.push_back(row.first_position + row.n_tokens);
  out.prompt_lengths.push_back(static_cast<std::int32_t>(s.spec.prompt->size()));
  in_step_.push_back(&s);
  if (!row.draws) return;
  out.logit_rows.push_back(static_cast<std::int32_t>(out.tokens.size()) - 1);
  out.draws.push_back(s.draw());
  drawing_.push_back(&row);
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
  out.epoch = plan.epoch;
  out.number = plan.number;
  out.drawn.reserve(drawing_.size());
  for (std::size_t i = 0; i < drawing_.size(); ++i) {
    state& s = states_.at(drawing_[i]->id);
    drawn_token d;
    d.id = drawing_[i]->id;
    d.token = drawn.tokens[i];
    s.tokens.push_back(d.token);
    if (s.counted()) s.count(d.token, true);
    const auto& stops = *s.spec.stop_ids;
    d.stopped = std::binary_search(stops.begin(), stops.end(), d.token);
    s.finished = d.stopped || s.n_output() >= static_cast<std::size_t>(s.spec.max_new);
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
}

} // namespace twill::actors
