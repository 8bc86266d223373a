#include "actors/scheduling/scheduler.hpp"

namespace twill::actors {

void scheduler::account(ledger& to, const holder_names& name) const {
  const std::string known = "sequences in the scheduler", running = "running sequences",
                    of_clients = "running sequences of clients",
                    line = waiting_queue::sequences_in_line,
                    of_known = waiting_queue::sequences_of_clients,
                    following = "sequences that follow others",
                    holding = "sequences that wait with blocks";
  using place = scheduled_sequence::place;
  const auto count = [](const auto& all) { return static_cast<std::int64_t>(all.size()); };
  to.taken(known, count(sequences_));
  to.taken(running, count(running_));
  for (const auto& [client, of] : running_.shares())
    to.taken(of_clients, of.running);
  queue_.account(to);
  to.taken(following, count(followers_));
  to.taken(holding, count(holding_));
  sequences_.for_each([&](sequence_id id, const scheduled_sequence& s) {
    const std::string holder = name(id);
    to.taken(known_kv_blocks, s.blocks);
    to.held(known, holder);
    to.held(of_known, holder);
    if (s.where == place::running) {
      to.held(running, holder);
      to.held(of_clients, holder);
    } else if (s.where == place::waiting) {
      to.held(line, holder);
      if (s.blocks > 0) to.held(holding, holder);
    } else {
      to.held(following, holder);
    }
  });
  policy_->account(to, name);
}

} // namespace twill::actors
