#include "actors/batcher/output_delivery.hpp"

#include <cstddef>
#include <utility>

namespace twill::actors {

void output_delivery::keep_scores(const step_result& result) {
  for (const scored_token& scored : result.scored) {
    const auto* s = groups_.find_sequence(scored.id);
    if (s == nullptr) continue;
    const auto& scores = sequence_groups::group_of(*s).scores;
    if (!scores) continue; // the scores were already delivered, before a preemption
    prompt_score& score = scores->at(static_cast<std::size_t>(scored.position) - 1);
    const auto first = result.top.begin() + scored.first_top;
    score.logprob = scored.logprob;
    score.top.assign(first, first + scored.n_top);
  }
}

void output_delivery::deliver_scores(const sequence_groups::sequence& s, const planned_row& row) {
  auto* owner = groups_.find(s.request);
  const auto computed = static_cast<std::size_t>(row.first_position + row.n_tokens);
  if (owner == nullptr || !owner->scores || computed < s.spec.prompt->size()) return;
  sessions_.scored(s.request, {std::move(owner->scores)});
  owner->scores = nullptr;
}

void output_delivery::deliver(sequence_id id, sequence_groups::sequence& s,
                              const drawn_token& drawn, const step_result& result) {
  // Drops a token of a step that was prepared before the sequence's end was known.
  const auto& owner = sequence_groups::group_of(s);
  if (s.finished || owner.released) return;
  if (drawn.no_allowed_token)
    return orders_.fail(
        s.request,
        {errc::executor_failed,
         "the output cannot go on: the vocabulary of the model has no token that its grammar "
         "allows here, or the grammar is so ambiguous that finding one takes too long; ask for "
         "another form of the output",
         ""});
  if (s.spec.is_pooled()) {
    end(id, s);
    const auto& values = result.pooled.at(static_cast<std::size_t>(drawn.first_top));
    return sessions_.pooled(s.request, {values, s.scheduled, owner.cached_tokens});
  }
  token_ready ready;
  ready.choice = s.choice;
  ready.token = drawn.token;
  ready.stopped = drawn.stopped;
  ready.length = !drawn.stopped && s.output.size() >= static_cast<std::size_t>(s.spec.max_new);
  ready.logprob = drawn.logprob;
  const auto first = result.top.begin() + drawn.first_top;
  ready.top.assign(first, first + drawn.n_top);
  ready.scheduled = s.scheduled;
  ready.cached_tokens = owner.cached_tokens;
  if (ready.stopped || ready.length) end(id, s);
  sessions_.token(s.request, std::move(ready));
}

/// Ends a sequence with the token that it drew last. The executor has found this end itself, so it
/// needs no order to leave the sequence out of the next step.
void output_delivery::end(sequence_id id, sequence_groups::sequence& s) {
  s.finished = true;
  scheduler_.leave(id);
}

} // namespace twill::actors
