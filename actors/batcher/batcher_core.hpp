// batcher_core: the logic of the batcher without actors. Its inputs are requests and step results;
// its outputs are step plans and tokens.
//
// One thread at a time. batcher_actor.cpp drives this class: after each message it asks next() for
// an action, carries the action out at the allocator or the executor, and asks again. Answers to
// sessions go through `session_sink`. The class has four parts: `sequence_groups` holds requests
// and drawn tokens, `scheduler` decides what a step computes, `prefix_cache_client` tracks what is
// under way to the allocator, and `step_pipeline` what is under way to the executor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "actors/batcher/batcher_limits.hpp"
#include "actors/batcher/batcher_observer.hpp"
#include "actors/batcher/prefix_cache_client.hpp"
#include "actors/batcher/sequence_groups.hpp"
#include "actors/batcher/step_pipeline.hpp"
#include "actors/batcher/tier_client.hpp"
#include "actors/detail/stats_board.hpp"
#include "actors/messages.hpp"
#include "actors/scheduling/prefill_budget.hpp"
#include "actors/scheduling/scheduler.hpp"

namespace twill::actors {

class batcher_core {
public:
  /// Receives the answers to sessions.
  class session_sink {
  public:
    virtual ~session_sink() = default;
    virtual void queued(request_id request) = 0;
    virtual void scored(request_id request, prompt_scored scores) = 0;
    virtual void pooled(request_id request, prompt_pooled pooled) = 0;
    virtual void token(request_id request, token_ready token) = 0;
    /// The final answer to a request that did not end by itself.
    virtual void failed(request_id request, const request_error& why) = 0;
    /// The request holds no resources any more.
    virtual void forgotten(request_id request) = 0;
  };

  /// Receives the orders to the tiers off the device.
  class tier_sink {
  public:
    virtual ~tier_sink() = default;
    /// The answer comes through fetched(). If it has not come after `patience`, fetched() is called
    /// with `given_up` and no blocks.
    virtual void fetch(fetch_blocks order, std::chrono::milliseconds patience) = 0;
    virtual void spilled(blocks_spilled blocks) = 0;
  };

  /// Nothing can be done until the next message.
  struct rest {};
  /// The next action of the batcher: wait, ask the allocator for a change, or send a plan to the
  /// executor.
  using action = std::variant<rest, kv_change, step_plan_ptr>;

  /// If `tiers` is null, blocks stay on the device. Every input and decision is reported to
  /// `observer`, which must outlive this object.
  batcher_core(const batcher_limits& limits, stats_board& stats, session_sink& sessions,
               tier_sink* tiers = nullptr, batcher_observer& observer = batcher_observer::none());

  // Orders from sessions and from the supervisor.
  void submit(const submit_prompt& prompt);
  void finish_choice(request_id request, std::int32_t choice);
  void release(request_id request);
  void pause(request_id request);
  void resume(request_id request);
  /// Ends the request with errc::queue_timed_out, unless it was scheduled.
  void waited_too_long(request_id request);
  /// An executor takes plans of this generation from now on. Its memory may hold less than that of
  /// the generation before. A request that no longer fits is shortened if its length was not asked
  /// for; otherwise it fails.
  void executor_ready(std::uint64_t generation, const batcher_limits& limits);

  /// Returns the next action. After a kv_change, nothing but granted() may be called until the
  /// allocator has answered, so that a step is planned from one state.
  action next(steady_clock::time_point now);
  /// Takes the allocator's answer to the kv_change that next() returned last.
  void granted(kv_grant grant, steady_clock::time_point now = steady_clock::now());
  /// Returns the sequences that left since the last call while an outstanding step of this
  /// generation still has a row of them. The executor is to skip these rows.
  skip_sequences take_departed();
  /// Whether a request that arrives now may have to wait for its turn.
  bool has_queue() const { return groups_.n_waiting() > 0; }
  /// The number of fetches that were not made, because they would have taken longer than computing
  /// the blocks.
  std::uint64_t fetches_refused() const { return fetches_.speeds.n_refused(); }
  /// Takes the answer to a fetch. An answer to a fetch that was given up is ignored.
  void fetched(blocks_fetched answer, steady_clock::time_point now);

  /// Takes a step's result. Results of an earlier generation are ignored.
  void step_done(const step_result& result, steady_clock::time_point now);
  /// The oldest outstanding step has failed, and its requests fail. A request survives if no token
  /// of it was drawn and this is its first failed step. Every sequence that is left is computed
  /// again. With `device_is_lost` all requests of the step fail.
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
  using group = sequence_groups::group;
  /// Where next() continues: at the beginning, or at the point that needed the allocator's answer.
  enum class phase : std::uint8_t { begin, schedule, send };

  std::optional<request_error> no_room(const submit_prompt& prompt, std::uint64_t client) const;
  void refuse(request_id request, const request_error& why);
  void release_choices(request_id request);
  void leave(sequence_id id);
  template <class F>
  void for_each_choice(request_id request, F&& apply);
  action ask(kv_change change, phase then);
  std::optional<kv_change> take_drops();
  std::optional<kv_change> look_up();
  action schedule(steady_clock::time_point now);
  action rest_or_drop();
  static void add_loads(sequence& s, step_plan& plan);
  bool starts_fetch(const prefix_match& match, steady_clock::time_point now);
  void expect_rows(const step_plan& plan, std::size_t i) const;
  void note_copies(const step_plan& plan, const step_result& result);
  action send(steady_clock::time_point now);
  step_plan_ptr send_plan(step_plan plan, std::int32_t preempted);
  step_plan build_plan(steady_clock::time_point now);
  void note_first_admission(const sequence& s, std::int32_t n_loaded);
  void keep_scores(const step_result& result);
  void deliver_scores(const sequence& s, const planned_row& row);
  void deliver(sequence_id id, sequence& s, const drawn_token& drawn, const step_result& result);
  void fail(request_id request, const request_error& why);
  void set_limits(const batcher_limits& limits);
  std::optional<request_error> misfit(const sequence_spec& spec) const;
  void refit();
  bool may_compute_again(request_id request);
  void lose_executor();
  std::string holder_of(sequence_id id) const;
  void publish_gauges();

  batcher_limits limits_;
  stats_board& stats_;
  session_sink& sessions_;
  tier_sink* tiers_; ///< null: blocks stay on the device
  batcher_observer& observer_;
  scheduler scheduler_;
  std::optional<prefill_budget> prefill_budget_; ///< set if batcher_limits::gap_target_s is > 0
  sequence_groups groups_;
  prefix_cache_client prefixes_;
  step_pipeline pipeline_;
  tier_client fetches_;
  std::vector<sequence_id> departed_; ///< sequences that take_departed() returns next
  std::vector<block_spill> spills_;   ///< spills that go into the next plan
  /// copies that go into the next plan; the last plan computes the blocks to be copied
  std::vector<block_copy> copies_;

  phase phase_ = phase::begin;
  bool awaiting_grant_ = false;
  bool fetches_began_ = false; ///< the allocator's last answer led to a fetch
  bool reset_blocks_ = false;  ///< the next kv_change begins with a reset
  step_decision decision_;     ///< decision about the step that is being planned
  kv_grant grant_;             ///< the allocator's last answer
};

} // namespace twill::actors
