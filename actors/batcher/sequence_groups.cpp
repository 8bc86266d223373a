#include "actors/batcher/sequence_groups.hpp"

#include <cstddef>
#include <string>

#include "actors/detail/holder_name.hpp"

namespace twill::actors {

sequence_groups::kind sequence_groups::kind_of(const group& g) {
  if (g.released) return released;
  if (g.n_running > 0) return running;
  return g.paused ? paused : waiting;
}

/// Every change of a member that kind_of() reads must go through this function.
template <class F>
void sequence_groups::change(group& g, F&& apply) {
  count(g, -1);
  apply(g);
  count(g, 1);
}

void sequence_groups::count(const group& g, std::int32_t by) {
  const kind k = kind_of(g);
  counts_[k] += by;
  if (k != waiting || g.counted_for == 0) return;
  if ((waiting_of_[g.counted_for] += by) == 0) waiting_of_.erase(g.counted_for);
}

std::int32_t sequence_groups::n_waiting_of(std::uint64_t counted_for) const {
  const auto found = waiting_of_.find(counted_for);
  return found == waiting_of_.end() ? 0 : found->second;
}

std::vector<std::int32_t> sequence_groups::sequence::known_tokens(std::int32_t first,
                                                                  std::int32_t last) const {
  const auto& prompt = *spec.prompt;
  const auto length = static_cast<std::int32_t>(prompt.size());
  std::vector<std::int32_t> tokens;
  tokens.reserve(static_cast<std::size_t>(last - first));
  for (std::int32_t p = first; p < last; ++p)
    tokens.push_back(p < length ? prompt[static_cast<std::size_t>(p)]
                                : output[static_cast<std::size_t>(p - length)]);
  return tokens;
}

const sequence_groups::group& sequence_groups::add(const submit_prompt& prompt,
                                                   std::uint64_t counted_for) {
  group& added = groups_[prompt.request];
  added.first = next_id_;
  added.n_choices = prompt.n_choices;
  added.counted_for = counted_for;
  added.tenant = prompt.tenant;
  added.client_id = prompt.client_id;
  count(added, 1);
  for (std::int32_t choice = 0; choice < prompt.n_choices; ++choice) {
    const sequence_id id = next_id_++;
    if (prompt.is_over(choice)) continue;
    if (added.n_left++ == 0) added.leader = id;
    sequence& s = sequences_[id];
    s.request = prompt.request;
    s.owner = &added;
    s.choice = choice;
    s.spec = prompt.spec;
    const auto made = prompt.made_of(choice);
    s.output.assign(made.begin(), made.end());
    s.spec.seed += static_cast<std::uint64_t>(choice);
    if (choice > 0) s.spec.prompt_logprobs = -1; // the first choice computes the prompt
  }
  if (prompt.spec.scores_prompt())
    added.scores = std::make_shared<std::vector<prompt_score>>(prompt.spec.prompt->size() - 1);
  return added;
}

sequence_groups::group* sequence_groups::find(request_id request) {
  group* found = groups_.find(request);
  return found == nullptr || found->released ? nullptr : found;
}

sequence_groups::sequence* sequence_groups::find_sequence(sequence_id id) {
  return sequences_.find(id);
}

std::optional<request_id> sequence_groups::release(const released_sequence& r) {
  sequence& s = sequences_.at(r.id);
  s.blocks.clear();
  s.n_inserted = 0;
  const request_id request = s.request;
  group& owner = *s.owner;
  if (r.opened) change(owner, [](group& g) { g.n_running -= 1; });
  if (!r.gone) return std::nullopt;
  sequences_.erase(r.id);
  if (--owner.n_left > 0) return std::nullopt;
  count(owner, -1);
  groups_.erase(request);
  return request;
}

void sequence_groups::forget_device() {
  sequences_.for_each([](sequence_id, sequence& s) {
    s.blocks.clear();
    s.n_inserted = 0;
    s.fetched = {}; // the next device may have another model
  });
  groups_.for_each(
      [this](request_id, group& g) { change(g, [](group& one) { one.n_running = 0; }); });
}

void sequence_groups::note_opened(const sequence& s) {
  change(group_of(s), [](group& g) {
    g.n_running += 1;
    g.scheduled = true;
  });
}

void sequence_groups::set_paused(request_id request, bool now_paused) {
  if (group* g = find(request)) change(*g, [now_paused](group& one) { one.paused = now_paused; });
}

void sequence_groups::mark_released(request_id request) {
  if (group* g = find(request)) change(*g, [](group& one) { one.released = true; });
}

void sequence_groups::account(ledger& to) const {
  static const std::array<std::string, 4> kinds{"waiting requests", "running requests",
                                                "paused requests in the queue",
                                                "requests that leave"};
  const std::string sequences = "sequences of requests", of_clients = "waiting requests of tenants";
  for (std::size_t k = 0; k < kinds.size(); ++k)
    to.taken(kinds[k], counts_[k]);
  for (const auto& [client, n] : waiting_of_)
    to.taken(of_clients, n);
  to.taken(sequences, static_cast<std::int64_t>(sequences_.size()));
  groups_.for_each([&](request_id id, const group& g) {
    const std::string holder = holder_name(id);
    to.held(kinds[kind_of(g)], holder);
    if (kind_of(g) == waiting && g.counted_for != 0) to.held(of_clients, holder);
    to.held(sequences, holder, g.n_left);
  });
}

std::vector<request_id> sequence_groups::requests() const {
  std::vector<request_id> all;
  all.reserve(groups_.size());
  groups_.for_each([&all](request_id id, const group&) { all.push_back(id); });
  return all;
}

} // namespace twill::actors
