#include "actors/scheduling/waiting_queue.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <vector>

namespace twill::actors {

void waiting_queue::note_arrival(const new_sequence& arrived) {
  known_client& client = clients_[arrived.client];
  if (client.sequences++ == 0)
    client.most_running = arrived.most_running;
  else if (client.most_running != arrived.most_running)
    limit(arrived.client, arrived.most_running);
}

void waiting_queue::note_left(const scheduled_sequence& s) {
  if (const auto client = clients_.find(s.client); --client->second.sequences == 0)
    clients_.erase(client);
}

void waiting_queue::add(scheduled_sequence& s) {
  const bool apart = s.paused || s.held;
  if (apart || !is_limited(s)) {
    (apart ? paused_ : line_).emplace(s.key, &s);
    return;
  }
  limited_line& line = limited_[s.client];
  line.held_back.emplace(s.key, &s);
  refill(s.client);
}

void waiting_queue::remove(scheduled_sequence& s) {
  const bool apart = s.paused || s.held;
  if (apart || !is_limited(s)) {
    (apart ? paused_ : line_).erase(s.key);
    return;
  }
  limited_line& line = limited_.at(s.client);
  if (line.held_back.erase(s.key) == 0) {
    line.in_line.erase(s.key);
    line_.erase(s.key);
  }
  refill(s.client);
}

service_order::const_iterator waiting_queue::admit(service_order::const_iterator admitted) {
  const priority_key key = admitted->first;
  const scheduled_sequence& s = *admitted->second;
  const auto next = line_.erase(admitted);
  if (is_limited(s)) limited_.at(s.client).in_line.erase(key);
  return next;
}

void waiting_queue::limit(std::uint64_t client, std::int32_t most_running) {
  std::vector<scheduled_sequence*> waiting;
  const auto add_those_of = [&](const service_order& all) {
    for (const auto& [key, s] : all)
      if (s->client == client) waiting.push_back(s);
  };
  add_those_of(line_);
  add_those_of(paused_);
  if (const auto found = limited_.find(client); found != limited_.end())
    add_those_of(found->second.held_back);
  for (scheduled_sequence* s : waiting)
    remove(*s);
  clients_.at(client).most_running = most_running;
  for (scheduled_sequence* s : waiting)
    add(*s);
}

void waiting_queue::refill(std::uint64_t client) {
  const auto found = limited_.find(client);
  if (found == limited_.end()) return;
  limited_line& line = found->second;
  const auto places =
      static_cast<std::size_t>(std::max(clients_.at(client).most_running - running_.of(client), 0));
  const auto hold_back_last = [&] {
    const auto last = std::prev(line.in_line.end());
    line_.erase(last->first);
    line.held_back.insert(line.in_line.extract(last));
  };
  const auto put_first = [&] {
    line_.insert(*line.held_back.begin());
    line.in_line.insert(line.held_back.extract(line.held_back.begin()));
  };
  while (line.in_line.size() > places)
    hold_back_last();
  while (line.in_line.size() < places && !line.held_back.empty())
    put_first();
  while (!line.in_line.empty() && !line.held_back.empty() &&
         line.held_back.begin()->first < line.in_line.rbegin()->first) {
    hold_back_last();
    put_first();
  }
  if (line.in_line.empty() && line.held_back.empty()) limited_.erase(found);
}

void waiting_queue::account(ledger& to) const {
  const auto count = [](const auto& all) { return static_cast<std::int64_t>(all.size()); };
  to.taken(sequences_in_line, count(line_) + count(paused_));
  for (const auto& [client, limited] : limited_)
    to.taken(sequences_in_line, count(limited.held_back));
  for (const auto& [client, of] : clients_)
    to.taken(sequences_of_clients, of.sequences);
}

} // namespace twill::actors
