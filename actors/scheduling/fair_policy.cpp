#include "actors/scheduling/fair_policy.hpp"

#include <algorithm>

namespace twill::actors {

/// The output tokens that a sequence is charged when it arrives: the number that its client's
/// sequences are expected to draw. If an earlier run of the request, before a restart of the
/// server, has drawn more tokens than that, the sequence is charged for as many as were drawn,
/// since these must be computed again, like a prompt.
std::int64_t fair_policy::charged_output(const client& c, const new_sequence& arrived) {
  const auto expected = std::min<std::int64_t>(c.expected_output, arrived.max_new);
  return std::max<std::int64_t>(expected, arrived.made);
}

std::int64_t fair_policy::rank_of(const new_sequence& arrived) {
  client& c = clients_[arrived.client];
  if (c.live == 0) {
    away_.erase({c.finish, arrived.client});
    active_weight_ += c.weight;
  }
  if (const std::int64_t weight = std::max(arrived.weight, 1); weight != c.weight) {
    active_weight_ += weight - c.weight; // the weight was changed in the configuration
    c.weight = weight;
  }
  // Further choices share the prompt of their leader, so they are charged one prompt token.
  const std::int64_t output = charged_output(c, arrived);
  const std::int64_t cost = (arrived.leader == 0 ? arrived.prompt_tokens : 1) + output;
  const std::int64_t step = cost * parts / c.weight;
  const order_in_client place{arrived.priority, arrived.id};
  auto next = c.queue.upper_bound(place);
  std::int64_t rank = c.queue.empty() ? std::max(virtual_time_, c.finish) : c.finish;
  if (next != c.queue.end()) {
    rank = next->second.rank;
    for (auto passed = next; passed != c.queue.end(); ++passed)
      passed->second.rank += step;
    c.finish += step;
    c.last += step;
    moved_.insert(arrived.client);
  } else {
    c.finish = rank + step;
    c.last = rank;
  }
  c.queue.emplace_hint(next, place, turn{rank, rank, step});
  c.live += 1;
  entries_[arrived.id] = {arrived.client, cost, output, step, arrived.priority};
  return rank;
}

void fair_policy::on_admitted(sequence_id id) {
  const auto found = entries_.find(id);
  // admitted again after a preemption
  if (found == entries_.end() || !found->second.waiting) return;
  entry& e = found->second;
  e.waiting = false;
  client& c = clients_.at(e.client);
  const auto turn = c.queue.find({e.priority, id});
  virtual_time_ = std::max(virtual_time_, turn->second.rank - c.running);
  c.queue.erase(turn);
  c.running += e.step;
}

/// A waiting sequence leaves: the later ones of its client move forward.
void fair_policy::cancel(std::uint64_t name, client& c, const order_in_client& who) {
  const auto gone = c.queue.find(who);
  const turn freed = gone->second;
  auto later = c.queue.erase(gone);
  c.last = freed.rank;
  if (later != c.queue.end()) moved_.insert(name);
  // The ranks of the client's sequences stay different from each other. Sequences of equal rank are
  // served in the order of arrival, which may not be the order of their priorities.
  std::int64_t least = freed.rank;
  for (; later != c.queue.end(); ++later) {
    c.last = later->second.rank = std::max(later->second.rank - freed.step, least);
    least = c.last + 1;
  }
  c.finish = std::max(c.finish - freed.step, c.last);
}

void fair_policy::on_left(sequence_id id, std::int32_t output_tokens) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  const entry e = found->second;
  entries_.erase(found);
  client& c = clients_.at(e.client);
  if (e.waiting) {
    cancel(e.client, c, {e.priority, id});
  } else {
    const std::int64_t served = e.charged - e.charged_output + output_tokens;
    c.expected_output += (output_tokens - c.expected_output) / 8;
    virtual_time_ += served * parts / active_weight_;
    c.running -= e.step;
    if (!c.queue.empty())
      virtual_time_ = std::max(virtual_time_, c.queue.begin()->second.rank - c.running);
    // The charge was made with a guess of the output's length. The earliest rank of the client's
    // next sequence is corrected by the difference, but stays at or behind the rank of its last
    // waiting sequence.
    c.finish = std::max(c.finish + parts * (served - e.charged) / c.weight, c.last);
  }
  if (--c.live > 0) return;
  active_weight_ -= c.weight;
  away_.emplace(c.finish, e.client);
  // An absent client that is not ahead of the virtual time need not be remembered.
  while (!away_.empty() && away_.begin()->first <= virtual_time_) {
    clients_.erase(away_.begin()->second);
    away_.erase(away_.begin());
  }
}

void fair_policy::on_resumed(sequence_id id) {
  const auto found = entries_.find(id);
  if (found == entries_.end() || !found->second.waiting) return;
  client& c = clients_.at(found->second.client);
  auto at = c.queue.find({found->second.priority, id});
  const std::int64_t late = virtual_time_ - at->second.rank;
  if (late <= 0) return;
  for (; at != c.queue.end(); ++at)
    at->second.rank += late;
  c.finish += late;
  c.last += late;
  moved_.insert(found->second.client);
}

void fair_policy::take_moved(std::vector<moved_sequence>& out) {
  for (const std::uint64_t name : moved_) {
    const auto found = clients_.find(name);
    if (found == clients_.end()) continue;
    for (auto& [place, t] : found->second.queue)
      if (t.rank != t.reported) out.push_back({place.second, t.reported = t.rank});
  }
  moved_.clear();
}

void fair_policy::account(ledger& to, const holder_names& name) const {
  const std::string turns = "turns of clients", waits = "turns that wait",
                    runs = "charges that run", weights = "weights of clients in turn";
  for (const auto& [client_name, c] : clients_) {
    to.taken(turns, c.live);
    to.taken(waits, static_cast<std::int64_t>(c.queue.size()));
    to.taken(runs, c.running);
  }
  to.taken(weights, active_weight_);
  std::set<std::uint64_t> in_turn;
  for (const auto& [id, e] : entries_) {
    to.held(turns, name(id));
    e.waiting ? to.held(waits, name(id)) : to.held(runs, name(id), e.step);
    if (!in_turn.insert(e.client).second) continue;
    const std::string holder = "client " + std::to_string(e.client);
    to.exists(holder);
    to.held(weights, holder, clients_.at(e.client).weight);
  }
}

} // namespace twill::actors
