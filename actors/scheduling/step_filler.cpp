#include "actors/scheduling/step_filler.hpp"

#include <algorithm>

#include "config/base/assert.hpp"

namespace twill::actors {

void step_filler::add_decodes(const running_set& running) {
  for (const auto& [key, s] : running) {
    if (tokens_ == 0) return;
    if (s->remaining() != 1) continue;
    const std::int32_t need = limits_.blocks_for(s->computed + 1) - s->blocks;
    if (!s->schedulable()) {
      if (s->paused) note_next_decodes(*s); // it may be resumed before the next step
      continue;
    }
    const bool lacks = need > blocks_.all || (need > 0 && lacking_.decode_blocks > 0);
    if (lacks && blocks_.exact) {
      if (!lacking_.first_starved) lacking_.first_starved = key;
      lacking_.decode_blocks += need;
      note_next_decodes(*s);
      continue;
    }
    if (lacks || need > blocks_.ready) {
      decode_left_out_ = true;
      note_next_decodes(*s);
      continue;
    }
    if (need > 0) {
      s->blocks += need;
      take_blocks(need);
      out_.grows.push_back({key.id, need});
    }
    add_row(*s, 1);
  }
}

void step_filler::add_prefills(const running_set& running) {
  if (!out_.rows.empty() && limits_.mixed_prompt_tokens > 0)
    tokens_ = std::min(tokens_, limits_.mixed_prompt_tokens);
  for (const auto& [key, s] : running) {
    if (tokens_ == 0) return;
    if (!s->schedulable() || s->remaining() <= 1) continue;
    if (const std::int32_t n = most_tokens(*s); n > 0) add_row(*s, n);
  }
}

bool step_filler::take_blocks_of_head(const priority_key& head, std::int64_t n_blocks,
                                      const prefix_hit& hit, std::int64_t spare) {
  const std::int64_t no_longer_free = n_blocks + hit.n_evictable;
  const bool lacks = no_longer_free + spare > blocks_.all;
  if (lacks && blocks_.exact) {
    lacking_.head = head;
    lacking_.head_blocks = no_longer_free + spare - blocks_.all;
    return false;
  }
  if (lacks || n_blocks > blocks_.ready || !hit.kept) {
    head_left_out_ = true;
    return false;
  }
  take_blocks(n_blocks);
  blocks_.all -= hit.n_evictable;
  return true;
}

void step_filler::admit(scheduled_sequence& s, const prefix_hit& hit) {
  open(s, hit);
  add_row(s, most_tokens(s));
}

void step_filler::open(scheduled_sequence& s, const prefix_hit& hit) {
  if (hit.n_blocks + hit.n_loaded > 0) {
    s.blocks = hit.n_blocks;
    s.computed = (hit.n_blocks + hit.n_loaded) * limits_.block_tokens;
    TWILL_ASSERT(s.remaining() > 0, "a hit leaves a token whose logits are drawn from");
  }
  if (hit.n_blocks > 0) out_.reuses.push_back(s.key.id);
  if (const std::int32_t need = limits_.blocks_for(s.known()) - s.blocks; need > 0) {
    out_.grows.push_back({s.key.id, need});
    s.blocks += need;
  }
  s.opened = true;
  out_.opened.push_back(s.key.id);
}

bool step_filler::take_block_of_copy(std::int64_t spare) {
  if (lacking_.decode_blocks > 0 || blocks_.all <= spare || blocks_.ready == 0) return false;
  take_blocks(1);
  return true;
}

/// Returns the most tokens that the sequence may have in the step. A chunk of a prompt whose
/// log-probabilities are asked for needs as many rows of logits as it has tokens: the row of a
/// prompt token gives the score of the next token, and that of the last one is used to draw the
/// first output token.
std::int32_t step_filler::most_tokens(const scheduled_sequence& s) const {
  const std::int32_t n = std::min(s.remaining(), tokens_);
  return s.scored ? std::min(n, logit_rows_) : logit_rows_ > 0 ? n : 0;
}

void step_filler::add_row(scheduled_sequence& s, std::int32_t n_tokens) {
  const planned_row row{s.key.id, s.computed, n_tokens, n_tokens == s.remaining()};
  tokens_ -= n_tokens;
  logit_rows_ -= s.scored ? n_tokens : row.draws ? 1 : 0;
  s.computed += n_tokens;
  s.in_flight += 1;
  if (row.draws) s.drawing += 1;
  out_.rows.push_back(row);
  if (row.draws) note_next_decodes(s);
  if (!s.leads) return;
  // The row may begin after the prompt, if output that an earlier run has drawn is cached.
  s.leads = s.computed < s.prompt;
  (s.leads ? other_leaders_ : completed_leaders_).push_back(s.key.id);
}

void step_filler::note_next_decodes(const scheduled_sequence& s) {
  // Most sequences have room for both tokens.
  if (s.computed + 2 <= s.blocks * limits_.block_tokens) return;
  const auto need = [&](std::int32_t n_decodes) {
    return std::max(limits_.blocks_for(s.computed + n_decodes) - s.blocks, 0);
  };
  const std::int32_t n_left = s.max_new - s.delivered - s.drawing;
  if (n_left >= 1) next_decodes_.of_one_step += need(1);
  if (n_left >= 1) next_decodes_.of_two_steps += need(std::min(n_left, 2));
}

} // namespace twill::actors
