// A plain reference for the fair policy (actors/scheduling/fair_policy.hpp) over one list of
// sequences. The sum of the active clients' weights, each client's running and waiting sequences,
// and the clients that are remembered are all computed from that list whenever they are needed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "actors/scheduling/admission_policy.hpp"

namespace scheduling_tests {

using namespace twill::actors;

class plain_fair_policy final : public admission_policy {
public:
  std::int64_t rank_of(const new_sequence& arrived) override {
    client& c = clients_[arrived.client];
    c.weight = std::max(arrived.weight, 1);
    charged s;
    s.id = arrived.id;
    s.client = arrived.client;
    s.priority = arrived.priority;
    s.output = std::max<std::int64_t>(std::min<std::int64_t>(c.expected_output, arrived.max_new),
                                      arrived.made);
    s.tokens = s.output + (arrived.leader == 0 ? arrived.prompt_tokens : 1);
    s.step = s.tokens * parts / c.weight;
    const auto waiting = queue(s.client);
    const auto passed = std::find_if(waiting.begin(), waiting.end(), [&](const charged* other) {
      return other->priority > s.priority;
    });
    if (passed != waiting.end()) {
      s.rank = (*passed)->rank;
      for (auto later = passed; later != waiting.end(); ++later)
        (*later)->rank += s.step;
      c.finish += s.step;
      c.last += s.step;
    } else {
      s.rank = waiting.empty() ? std::max(virtual_time_, c.finish) : c.finish;
      c.finish = s.rank + s.step;
      c.last = s.rank;
    }
    s.reported = s.rank;
    all_.push_back(s);
    return s.rank;
  }

  void on_admitted(sequence_id id) override {
    charged* s = find(id);
    if (s == nullptr || !s->waits) return;
    virtual_time_ = std::max(virtual_time_, s->rank - running(s->client));
    s->waits = false;
  }

  void on_left(sequence_id id, std::int32_t output_tokens) override {
    const charged* found = find(id);
    if (found == nullptr) return;
    const charged s = *found;
    client& c = clients_.at(s.client);
    if (s.waits) {
      // Later sequences of the client move forward, to different places behind this one's.
      auto waiting = queue(s.client);
      c.last = s.rank;
      std::int64_t least = s.rank;
      for (charged* later : waiting)
        if (std::tie(later->priority, later->id) > std::tie(s.priority, s.id)) {
          c.last = later->rank = std::max(later->rank - s.step, least);
          least = later->rank + 1;
        }
      c.finish = std::max(c.finish - s.step, c.last);
      forget(id);
    } else {
      const std::int64_t served = s.tokens - s.output + output_tokens;
      virtual_time_ += served * parts / active_weight();
      c.expected_output += (output_tokens - c.expected_output) / 8;
      forget(id);
      if (const auto waiting = queue(s.client); !waiting.empty())
        virtual_time_ = std::max(virtual_time_, waiting.front()->rank - running(s.client));
      c.finish = std::max(c.finish + parts * (served - s.tokens) / c.weight, c.last);
    }
    if (live(s.client) > 0) return;
    std::erase_if(clients_, [&](const auto& one) {
      return live(one.first) == 0 && one.second.finish <= virtual_time_;
    });
  }

  void on_resumed(sequence_id id) override {
    charged* s = find(id);
    if (s == nullptr || !s->waits || s->rank >= virtual_time_) return;
    const std::int64_t late = virtual_time_ - s->rank;
    const auto resumed = std::pair(s->priority, s->id);
    for (charged* other : queue(s->client))
      if (std::pair(other->priority, other->id) >= resumed) other->rank += late;
    clients_.at(s->client).finish += late;
    clients_.at(s->client).last += late;
  }

  void take_moved(std::vector<moved_sequence>& out) override {
    for (charged& s : all_)
      if (s.waits && s.rank != s.reported) out.push_back({s.id, s.reported = s.rank});
  }
  bool shares_running_set() const override { return true; }
  std::size_t clients() const { return clients_.size(); }

private:
  static constexpr std::int64_t parts = 1 << 16;
  struct charged {
    sequence_id id = 0;
    std::uint64_t client = 0;
    std::int32_t priority = 0;
    std::int64_t tokens = 0, output = 0, step = 0, rank = 0, reported = 0;
    bool waits = true; ///< it was never admitted
  };
  struct client {
    std::int64_t finish = 0, last = 0, weight = 1, expected_output = 128;
  };

  charged* find(sequence_id id) {
    const auto found =
        std::find_if(all_.begin(), all_.end(), [&](const charged& s) { return s.id == id; });
    return found == all_.end() ? nullptr : &*found;
  }
  void forget(sequence_id id) {
    std::erase_if(all_, [&](const charged& s) { return s.id == id; });
  }
  /// A client's sequences that were never admitted, in the client's order.
  std::vector<charged*> queue(std::uint64_t of) {
    std::vector<charged*> found;
    for (charged& s : all_)
      if (s.waits && s.client == of) found.push_back(&s);
    std::sort(found.begin(), found.end(), [](const charged* a, const charged* b) {
      return std::tie(a->priority, a->id) < std::tie(b->priority, b->id);
    });
    return found;
  }
  std::int64_t live(std::uint64_t of) const {
    return std::count_if(all_.begin(), all_.end(),
                         [&](const charged& s) { return s.client == of; });
  }
  /// The sum of the weighted charges of a client's running sequences.
  std::int64_t running(std::uint64_t of) const {
    std::int64_t sum = 0;
    for (const charged& s : all_)
      if (s.client == of && !s.waits) sum += s.step;
    return sum;
  }
  std::int64_t active_weight() const {
    std::int64_t sum = 0;
    for (const auto& [name, c] : clients_)
      if (live(name) > 0) sum += c.weight;
    return sum;
  }

  std::int64_t virtual_time_ = 0;
  std::vector<charged> all_;
  std::map<std::uint64_t, client> clients_;
};

} // namespace scheduling_tests
