// batcher_core: the logic of the batcher without actors. Its inputs are requests and step results;
// its outputs are step plans and tokens.
//
// One thread at a time. batcher_actor.cpp drives this class: after each message it asks next() for
// an action, carries the action out at the allocator or the executor, and asks again. A session is
// the actor that serves one request; answers to sessions go through `session_sink`. The class
// connects the following parts. Its own state is mainly the point at which the planning of a step
// waits for the allocator. `sequence_groups` holds requests and drawn tokens, `scheduler` decides
// what a step computes, `request_orders` begins and ends requests, `prefix_cache_client` makes the
// queries and insertions for the prefix cache of the allocator, `tier_client` tracks the fetches of
// KV blocks from host memory and disk (the tiers), and `step_pipeline` tracks the plans that the
// executor has. `plan_builder` makes the plans, and `output_delivery` brings their results to the
// sessions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "actors/batcher/batcher_limits.hpp"
#include "actors/batcher/batcher_observer.hpp"
#include "actors/batcher/output_delivery.hpp"
#include "actors/batcher/plan_builder.hpp"
#include "actors/batcher/prefix_cache_client.hpp"
#include "actors/batcher/request_orders.hpp"
#include "actors/batcher/sequence_groups.hpp"
#include "actors/batcher/session_sink.hpp"
#include "actors/batcher/step_counts.hpp"
#include "actors/batcher/step_pipeline.hpp"
#include "actors/batcher/tier_client.hpp"
#include "actors/detail/stats_board.hpp"
#include "actors/messages.hpp"
#include "actors/scheduling/prefill_budget.hpp"
#include "actors/scheduling/scheduler.hpp"

namespace twill::actors {

class batcher_core {
public:
  /// Nothing can be done until the next message.
  struct rest {};
  /// The next action of the batcher: wait, ask the KV allocator for a change of the blocks that
  /// sequences have, or send a plan to the executor.
  using action = std::variant<rest, kv_change, step_plan_ptr>;

  /// KV blocks are copied to and from host memory and disk through `tiers`; if it is null, blocks
  /// stay on the device. Every input and decision is reported to `observer`, which must outlive
  /// this object.
  batcher_core(const batcher_limits& limits, stats_board& stats, session_sink& sessions,
               tier_sink* tiers = nullptr, batcher_observer& observer = batcher_observer::none());

  batcher_core(const batcher_core&) = delete; // its parts refer to each other
  batcher_core& operator=(const batcher_core&) = delete;

  // Orders from sessions and from the supervisor.
  void submit(const submit_prompt& prompt) { orders_.submit(prompt, limits_); }
  void finish_choice(request_id request, std::int32_t choice) {
    orders_.finish_choice(request, choice);
  }
  void release(request_id request) { orders_.release(request); }
  void pause(request_id request) { orders_.pause(request); }
  void resume(request_id request) { orders_.resume(request); }
  /// Ends the request with errc::queue_timed_out, unless it was scheduled.
  void waited_too_long(request_id request) { orders_.waited_too_long(request); }
  /// An executor takes plans of this generation (load of the model) from now on. Its KV cache may
  /// be smaller than that of the generation before. A request that no longer fits gets a lower
  /// output limit if its client set none; otherwise it fails.
  void executor_ready(std::uint64_t generation, const batcher_limits& limits);

  /// Returns the next action. If it is a kv_change, nothing but granted() may be called until the
  /// allocator has answered, so that the state from which a step is planned does not change
  /// halfway.
  action next(steady_clock::time_point now);
  /// Takes the allocator's answer to the kv_change that next() returned last.
  void granted(kv_grant grant, steady_clock::time_point now);
  /// Returns the sequences that have ended since the last call although an outstanding step of this
  /// generation still computes tokens of them. The executor is to skip the rows of these sequences;
  /// a row is one sequence's part of a step.
  skip_sequences take_departed();
  /// Whether a request that arrives now may have to wait for its turn.
  bool has_queue() const { return groups_.n_waiting() > 0; }
  /// The number of fetches of KV blocks that were not made, because they would have taken longer
  /// than computing the blocks.
  std::uint64_t fetches_refused() const { return tiers_.speeds.n_refused(); }
  /// Takes the answer to a fetch. An answer to a fetch that was given up is ignored.
  void fetched(blocks_fetched answer, steady_clock::time_point now);

  /// Takes a step's result. Results of an earlier generation are ignored.
  void step_done(const step_result& result, steady_clock::time_point now);
  /// The oldest outstanding step has failed. Its requests fail too, but a request that has drawn no
  /// token and had no failed step before is computed again. With `device_is_lost` all requests of
  /// the step fail. Whether or not the device is lost, all other sequences of the batcher are
  /// computed again too.
  void step_failed(std::uint64_t generation, const std::string& detail,
                   bool device_is_lost = false);

  /// Returns the snapshot of the scheduler. It includes `leases`, which must be of this moment too.
  scheduler_snapshot describe(kv_leases leases) const;
  /// The ledger of what the batcher counts and of the allocator's `leases` at this moment.
  ledger account(const kv_leases& leases) const;
  /// Adds the sequence states that the executor of this generation has.
  void account(const listed_states& states, ledger& to) const;

private:
  using sequence = sequence_groups::sequence;
  /// Where next() continues: at the beginning, or at the point that needed the allocator's answer.
  enum class phase : std::uint8_t { begin, schedule, send };

  action ask(kv_change change, phase then);
  std::optional<kv_change> take_drops();
  std::optional<kv_change> look_up();
  action schedule(steady_clock::time_point now);
  action rest_or_drop();
  bool starts_fetch(const prefix_match& match, steady_clock::time_point now);
  action send(steady_clock::time_point now);
  step_plan_ptr send_plan(step_plan plan, std::int32_t preempted);
  void note_opened(steady_clock::time_point now);
  void note_first_admission(const sequence& s, std::int32_t n_loaded);
  void prefetch_rows(const step_plan& plan, std::size_t i) const;
  void note_drawn(sequence& s, sequence_id id, std::int32_t token, steady_clock::time_point now,
                  step_counts& counts);
  void set_limits(const batcher_limits& limits);
  void lose_executor();
  std::string holder_of(sequence_id id) const;
  void publish_gauges();

  batcher_limits limits_;
  stats_board& stats_;
  session_sink& sessions_;
  batcher_observer& observer_;
  scheduler scheduler_;
  std::optional<prefill_budget> prefill_budget_; ///< set if batcher_limits::gap_target_s is > 0
  sequence_groups groups_;
  request_orders orders_;
  prefix_cache_client prefixes_;
  tier_client tiers_;
  plan_builder plans_;
  step_pipeline pipeline_;
  output_delivery outputs_;

  phase phase_ = phase::begin;
  bool awaiting_grant_ = false;
  bool fetches_began_ = false; ///< the allocator's last answer led to a fetch
  bool reset_blocks_ = false;  ///< the next kv_change begins with a reset
  step_decision decision_;     ///< decision about the step that is being planned
  kv_grant grant_;             ///< the allocator's last answer
};

} // namespace twill::actors
