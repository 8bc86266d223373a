// batcher_core: the logic of the batcher without actors. Its inputs are requests and step results;
// its outputs are step plans and tokens.
//
// One thread at a time. batcher_actor.cpp drives this class: after each message it sends the plans
// that plan() returns to the executor, and what take_change() and take_request() return to the KV
// allocator. The new blocks of a plan were granted before (`block_supply`). plan() waits for the
// allocator only if decodes lack granted blocks while the executor still has a step to run. A
// session is the actor that serves one request; answers to sessions go through `session_sink`. The
// class connects the following parts. `sequence_groups` holds requests and drawn tokens,
// `scheduler` decides what a step computes, `request_orders` begins and ends requests,
// `prefix_cache_client` makes the queries and insertions for the prefix cache of the allocator,
// `tier_client` tracks the fetches of KV blocks from host memory and disk (the tiers), and
// `step_pipeline` tracks the plans that the executor has. `plan_builder` makes the plans, and
// `output_delivery` brings their results to the sessions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "actors/batcher/batcher_limits.hpp"
#include "actors/batcher/batcher_observer.hpp"
#include "actors/batcher/block_supply.hpp"
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

using holder_names_by_sequence = std::unordered_map<sequence_id, std::string>;

/// Adds the allocator's leases to the ledger. `holders` must be of the same moment as the leases.
/// If it lacks the sequence of a lease, the lease is listed under "sequence ID".
void add_leases(const kv_leases& leases, const holder_names_by_sequence& holders, ledger& to);

class batcher_core {
public:
  /// KV blocks are copied to and from host memory and disk through `tiers`; if it is null, blocks
  /// stay on the device. Every input and decision is reported to `observer`, which must outlive
  /// this object.
  batcher_core(const batcher_limits& limits, stats_board& stats, session_sink& sessions,
               tier_sink* tiers = nullptr, batcher_observer& observer = batcher_observer::none());

  batcher_core(const batcher_core&) = delete; // its parts refer to each other
  batcher_core& operator=(const batcher_core&) = delete;

  // Orders from sessions and from the supervisor.
  void submit(const submit_prompt& prompt) { orders().submit(prompt, limits_); }
  void finish_choice(request_id request, std::int32_t choice) {
    orders().finish_choice(request, choice);
  }
  void release(request_id request) { orders().release(request); }
  void pause(request_id request) { orders().pause(request); }
  void resume(request_id request) { orders().resume(request); }
  /// Ends the request with errc::queue_timed_out, unless it was scheduled.
  void waited_too_long(request_id request) { orders().waited_too_long(request); }
  /// An executor takes plans of this generation (load of the model) from now on. Its KV cache may
  /// be smaller than that of the generation before. A request that no longer fits gets a lower
  /// output limit if its client set none; otherwise it fails.
  void executor_ready(std::uint64_t generation, const batcher_limits& limits);

  /// Returns the next step plan, or null if no other plan can be sent now. Until the driver has
  /// called take_change(), plan() must not be called again.
  step_plan_ptr plan(steady_clock::time_point now);
  /// Returns what has changed in the leases (which sequence has which blocks) since the last call,
  /// or nullopt. The allocator must apply the changes in the order in which they were returned, and
  /// before it handles any later block_request.
  std::optional<kv_change> take_change();
  /// Returns the next block_request, or nullopt if there is nothing to request, a request is
  /// outstanding, or no executor is ready. take_change() must have been called before.
  std::optional<block_request> take_request();
  /// Takes the answer to the last take_request(). Plans may have been made since then.
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

  /// Returns the snapshot of the scheduler, without KV blocks (see with_blocks()).
  scheduler_snapshot describe() const;
  /// The ledger of what the batcher counts, without the allocator's leases (see add_leases()).
  ledger account() const;
  /// The names under which a ledger lists what sequences hold.
  holder_names_by_sequence holders() const;
  /// Adds the sequence states that the executor of this generation has.
  void account(const listed_states& states, ledger& to) const;

private:
  using sequence = sequence_groups::sequence;
  /// none: no request is outstanding. asked: one is. ignored: one is, but the blocks were reset
  /// since it was sent, so its answer will be ignored.
  enum class request_state : std::uint8_t { none, asked, ignored };

  /// An order changes what the allocator should be asked for.
  request_orders& orders() {
    request_due_ = true;
    return orders_;
  }
  void collect_released();
  bool starts_fetch(const prefix_match& match, steady_clock::time_point now);
  bool should_wait() const;
  std::int64_t most_ahead(std::int64_t n_blocks) const;
  step_plan_ptr plan_rows(steady_clock::time_point now);
  step_plan_ptr send_plan(step_plan plan, std::int32_t preempted);
  void note_opened(steady_clock::time_point now);
  void note_first_admission(const sequence& s, std::int32_t n_loaded);
  void prefetch_rows(const step_plan& plan, std::size_t i) const;
  void note_drawn(sequence& s, sequence_id id, std::int32_t token, steady_clock::time_point now,
                  step_counts& counts);
  void set_limits(const batcher_limits& limits);
  void lose_executor();
  void reset_blocks();
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

  block_supply blocks_;
  kv_change change_; ///< what take_change() returns next
  request_state request_ = request_state::none;
  bool request_due_ = false; ///< a new block_request may be needed
  /// take_change() has returned a change since the last block_request
  bool changed_since_request_ = false;
  step_decision decision_; ///< decision about the step that is being planned
};

} // namespace twill::actors
