#include "actors/scheduling/running_set.hpp"

namespace twill::actors {

void running_set::add(scheduled_sequence& s) {
  order_.add(s.key, &s);
  share& of = shares_[s.client];
  of.running += 1;
  of.weight = s.weight;
}

void running_set::remove(const scheduled_sequence& s) {
  if (const auto of = shares_.find(s.client); --of->second.running == 0) shares_.erase(of);
  order_.erase(s.key);
}

std::int32_t running_set::of(std::uint64_t client) const {
  const auto found = shares_.find(client);
  return found == shares_.end() ? 0 : found->second.running;
}

std::int64_t running_set::prompt_tokens_left() const {
  std::int64_t left = 0;
  for (const auto& [key, s] : order_)
    if (s->schedulable() && s->remaining() > 1) left += s->remaining();
  return left;
}

} // namespace twill::actors
