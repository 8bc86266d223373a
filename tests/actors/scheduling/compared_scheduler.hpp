// A scheduler and a plain reference scheduler that get the same calls and must give the same
// answers. The pair has the interface of a scheduler; if an answer differs, it throws
// twill::test::broken.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "actors/scheduling/scheduler.hpp"
#include "tests/actors/scheduling/plain_scheduler.hpp"
#include "tests/support/operations.hpp"

namespace scheduling_tests {

inline std::string written(const step_decision& d) {
  std::ostringstream out;
  out << "opened:";
  for (const sequence_id id : d.opened)
    out << " " << id;
  out << "; rows:";
  for (const planned_row& r : d.rows)
    out << " " << r.id << ":" << r.first_position << "+" << r.n_tokens << (r.draws ? "*" : "");
  out << "; reuses:";
  for (const sequence_id id : d.reuses)
    out << " " << id;
  out << "; grows:";
  for (const lease_growth& g : d.grows)
    out << " " << g.id << ":" << g.n_blocks;
  out << "; forks:";
  for (const lease_fork& f : d.forks)
    out << " " << f.from << ">" << f.id << ":" << f.n_blocks;
  out << "; copies:";
  for (const lease_copy& c : d.copies)
    out << " " << c.from << ">" << c.id << "@" << c.column;
  out << "; preempted: " << d.preempted;
  return out.str();
}

inline std::string written(const std::vector<released_sequence>& all) {
  std::string text;
  for (const released_sequence& r : all)
    text += " " + std::to_string(r.id) + (r.leased ? "l" : "") + (r.opened ? "o" : "") +
            (r.gone ? "g" : "");
  return text;
}

inline std::string written(const std::vector<sequence_id>& ids) {
  std::string text;
  for (const sequence_id id : ids)
    text += " " + std::to_string(id);
  return text;
}

inline void demand_same(const std::string& is, const std::string& expected,
                        const std::string& what) {
  twill::test::demand(is == expected, what + " is\n  " + is + "\nexpected\n  " + expected);
}

class compared_scheduler {
public:
  /// Takes two equal policies, one for each scheduler.
  compared_scheduler(const plan_limits& limits, std::unique_ptr<admission_policy> policy,
                     std::unique_ptr<admission_policy> plain_policy)
      : real_(limits, std::move(policy)), plain_(limits, std::move(plain_policy)) {}

  void add(const new_sequence& arrived) {
    clients_.insert(arrived.client);
    real_.add(arrived);
    plain_.add(arrived);
    compare("add");
  }
  bool leave(sequence_id id) {
    const bool in_flight = real_.leave(id);
    twill::test::demand_equal(in_flight, plain_.leave(id), "what leave() says");
    compare("leave");
    return in_flight;
  }
  void pause(sequence_id id) {
    real_.pause(id);
    plain_.set_paused(id, true);
    compare("pause");
  }
  void resume(sequence_id id) {
    real_.resume(id);
    plain_.set_paused(id, false);
    compare("resume");
  }
  void hold(sequence_id id) {
    real_.hold(id);
    plain_.set_held(id, true);
    compare("hold");
  }
  void unhold(sequence_id id) {
    real_.unhold(id);
    plain_.set_held(id, false);
    compare("unhold");
  }
  void shorten(sequence_id id, std::int32_t max_new) {
    real_.shorten(id, max_new);
    plain_.shorten(id, max_new);
  }
  void set_mixed_prompt_tokens(std::int32_t n) {
    real_.set_mixed_prompt_tokens(n);
    plain_.set_mixed_prompt_tokens(n);
  }
  void set_limits(const plan_limits& limits) {
    real_.set_limits(limits);
    plain_.set_limits(limits);
  }
  void candidates(std::vector<sequence_id>& out) {
    real_.candidates(out);
    demand_same(written(out), written(plain_.candidates()), "who is a candidate");
  }
  void plan(free_blocks free, step_decision& out, std::span<const prefix_hit> hits = {}) {
    demand_same(std::to_string(real_.further_blocks()), std::to_string(plain_.further_blocks()),
                "the further blocks");
    const step_decision expected = plain_.plan(free, hits);
    real_.plan(free, out, hits);
    demand_same(written(out), written(expected), "the plan");
    const decode_blocks is = real_.blocks_of_next_decodes();
    const decode_blocks expected_blocks = plain_.blocks_of_next_decodes();
    demand_same(std::to_string(is.of_one_step), std::to_string(expected_blocks.of_one_step),
                "the blocks of the next step's decodes");
    demand_same(std::to_string(is.of_two_steps), std::to_string(expected_blocks.of_two_steps),
                "the blocks of the next two steps' decodes");
    demand_same(std::to_string(real_.decode_left_out()), std::to_string(plain_.decode_left_out()),
                "whether a decode was left out");
    demand_same(std::to_string(real_.head_left_out()), std::to_string(plain_.head_left_out()),
                "whether the head of the queue was left out");
    compare("plan");
  }
  void row_done(sequence_id id, bool draws, bool drew) {
    real_.row_done(id, draws, drew);
    plain_.row_done(id, draws, drew);
    compare("row_done");
  }
  void forget_device() {
    real_.forget_device();
    plain_.forget_device();
    compare("forget_device");
  }
  void take_released(std::vector<released_sequence>& out) {
    real_.take_released(out);
    demand_same(written(out), written(plain_.take_released()), "what was released");
    compare("take_released");
  }
  bool has_released() const { return real_.has_released(); }
  std::size_t running() const { return real_.running(); }
  std::int32_t running_of(std::uint64_t client) const { return real_.running_of(client); }
  bool is_running(sequence_id id) const { return real_.is_running(id); }

  const plain_scheduler& plain() const { return plain_; }

private:
  /// Compares everything that can be queried without changing a scheduler.
  void compare(const char* after) const {
    using twill::test::demand_equal;
    const std::string when = std::string("after ") + after;
    if (const auto n = static_cast<std::size_t>(plain_.running()); real_.running() != n)
      demand_equal(real_.running(), n, when + ", how many run");
    if (real_.has_released() != plain_.has_released())
      demand_equal(real_.has_released(), plain_.has_released(), when + ", whether any is released");
    for (const std::uint64_t client : clients_)
      if (real_.running_of(client) != plain_.running_of(client))
        demand_equal(real_.running_of(client), plain_.running_of(client),
                     when + ", how many client " + std::to_string(client) + " runs");
    // The numbers of running sequences are equal, so it is enough that each of these runs.
    for (const plain_sequence* s : plain_.everyone())
      if (const bool runs = s->place == plain_sequence::runs; real_.is_running(s->of.id) != runs)
        demand_equal(!runs, runs, when + ", whether " + std::to_string(s->of.id) + " runs");
  }

  scheduler real_;
  plain_scheduler plain_;
  std::set<std::uint64_t> clients_;
};

} // namespace scheduling_tests
