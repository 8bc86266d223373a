#include "actors/scheduling/fair_policy.hpp"

#include <algorithm>

namespace twill::actors {

std::int64_t fair_policy::charge(const new_sequence& arrived) const {
  const auto found = clients_.find(arrived.client);
  const std::int64_t guess = found == clients_.end() ? first_guess : found->second.expected_output;
  // Further choices share their leader's prompt.
  return (arrived.leader == 0 ? arrived.prompt_tokens : 1) +
         std::min<std::int64_t>(guess, arrived.max_new);
}

std::int64_t fair_policy::rank_of(const new_sequence& arrived) {
  client& c = clients_[arrived.client];
  if (c.live == 0) {
    away_.erase({c.finish, arrived.client});
    n_active_ += 1;
  }
  const std::int64_t cost = charge(arrived);
  const std::int64_t rank = c.waiting > 0 ? c.finish : std::max(virtual_time_, c.finish);
  c.last = rank;
  c.finish = rank + cost * parts;
  c.live += 1;
  c.waiting += 1;
  entries_[arrived.id] = {arrived.client, cost,
                          std::min<std::int64_t>(c.expected_output, arrived.max_new)};
  return rank;
}

void fair_policy::on_admitted(sequence_id id) {
  const auto found = entries_.find(id);
  if (found == entries_.end() || !found->second.waiting) return; // again, after a preemption
  found->second.waiting = false;
  clients_.at(found->second.client).waiting -= 1;
}

void fair_policy::on_left(sequence_id id, std::int32_t output_tokens) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  const entry e = found->second;
  entries_.erase(found);
  client& c = clients_.at(e.client);
  std::int64_t served = 0;
  if (e.waiting) {
    c.waiting -= 1;
  } else {
    served = e.charged - e.charged_output + output_tokens;
    c.expected_output += (output_tokens - c.expected_output) / 8;
    virtual_time_ += served * parts / n_active_;
  }
  // What was guessed is corrected, as far as the order of the client's sequences allows.
  c.finish = std::max(c.finish + parts * (served - e.charged), c.last);
  if (--c.live > 0) return;
  n_active_ -= 1;
  away_.emplace(c.finish, e.client);
  // Whoever is not ahead of the virtual time is like a client that never came.
  while (!away_.empty() && away_.begin()->first <= virtual_time_) {
    clients_.erase(away_.begin()->second);
    away_.erase(away_.begin());
  }
}

} // namespace twill::actors
