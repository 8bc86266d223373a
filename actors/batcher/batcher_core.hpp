// batcher_core: the logic of the batcher without actors: requests in, step plans out, step results
// in, tokens out.
//
// One thread at a time. batcher_actor.cpp drives it: after each message it asks next() what to do,
// carries the answer to the allocator or the executor, and asks again. Answers to sessions go
// through `session_sink`. The parts: `sequence_groups` holds requests and drawn tokens, `scheduler`
// decides, `prefix_cache_client` and `step_pipeline` keep what is under way to the allocator and to
// the executor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "actors/batcher/batcher_limits.hpp"
#include "actors/batcher/prefix_cache_client.hpp"
#include "actors/batcher/sequence_groups.hpp"
#include "actors/batcher/step_pipeline.hpp"
#include "actors/batcher/tier_client.hpp"
#include "actors/detail/stats_board.hpp"
#include "actors/messages.hpp"
#include "actors/scheduling/prefill_budget.hpp"
#include "actors/scheduling/scheduler.hpp"

namespace twill::actors {

class scheduler_trace;

class batcher_core {
public:
  /// Where answers to sessions go.
  class session_sink {
  public:
    virtual ~session_sink() = default;
    virtual void queued(request_id request) = 0;
    virtual void scored(request_id request, prompt_scored scores) = 0;
    virtual void pooled(request_id request, prompt_pooled pooled) = 0;
    virtual void token(request_id request, token_ready token) = 0;
    /// The last word about a request that did not end by itself.
    virtual void failed(request_id request, const request_error& why) = 0;
    /// The request holds nothing any more.
    virtual void forgotten(request_id request) = 0;
  };

  /// Where orders to the tiers off the device go.
  class tier_sink {
  public:
    virtual ~tier_sink() = default;
    /// Answered by fetched(), with no blocks once `patience` is over.
    virtual void fetch(fetch_blocks order, std::chrono::milliseconds patience) = 0;
    virtual void spilled(blocks_spilled blocks) = 0;
  };

  /// Nothing can be done until the next message.
  struct rest {};
  /// What is to be done next: nothing, ask the allocator for a change, or send a plan to the
  /// executor.
  using action = std::variant<rest, kv_change, step_plan_ptr>;

  /// Without `tiers` blocks stay on the device. `trace` is told of everything, where there is one.
  batcher_core(const batcher_limits& limits, stats_board& stats, session_sink& sessions,
               tier_sink* tiers = nullptr, scheduler_trace* trace = nullptr);

  // Orders of sessions and of the supervisor.
  void submit(const submit_prompt& prompt);
  void finish_choice(request_id request, std::int32_t choice);
  void release(request_id request);
  void pause(request_id request);
  void resume(request_id request);
  /// The request fails, unless it was scheduled.
  void waited_too_long(request_id request);
  /// An executor takes plans of this life. Its memory may hold less than that of the life before:
  /// requests that do not fit any more are shortened where nobody asked for their length, or fail.
  void executor_ready(std::uint64_t generation, const batcher_limits& limits);

  /// What is to be done next. After a kv_change, nothing but granted() may be called before it has
  /// been answered, so that a step is planned from one state.
  action next(steady_clock::time_point now);
  /// The allocator's answer to the kv_change of the last next().
  void granted(kv_grant grant, steady_clock::time_point now = steady_clock::now());
  /// Sequences that left since the last call although an outstanding step of this life has a row of
  /// them; the executor is to skip it.
  skip_sequences take_departed();
  /// Whether a request that has just come may have to wait for its turn.
  bool has_queue() const { return groups_.n_waiting() > 0; }
  /// Fetches that would have taken longer than computing the blocks.
  std::uint64_t fetches_refused() const { return fetches_.speeds.n_refused(); }
  /// The answer to a fetch; one that was given up is ignored.
  void fetched(blocks_fetched answer, steady_clock::time_point now);

  /// Results of an earlier epoch are ignored.
  void step_done(const step_result& result, steady_clock::time_point now);
  /// The requests of the oldest outstanding step fail, except those of which nothing was drawn and
  /// that are lost for the first time. Every sequence that is left is computed again.
  /// With `device_is_lost` no request is computed again.
  void step_failed(std::uint64_t generation, const std::string& detail,
                   bool device_is_lost = false);

  /// The picture with the allocator's part in it, which is of this moment, too.
  scheduler_snapshot describe(kv_leases leases) const;
  /// What it counts, and what the allocator says of the blocks at this moment.
  ledger account(const kv_leases& leases) const;
  /// Adds the states that the executor of this life has.
  void account(const listed_states& states, ledger& to) const;

private:
  using sequence = sequence_groups::sequence;
  using group = sequence_groups::group;
  /// Where next() goes on: at the beginning, or with what the allocator's answer is for.
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
  tier_sink* tiers_;       ///< null: blocks stay on the device
  scheduler_trace* trace_; ///< null: nobody records
  scheduler scheduler_;
  std::optional<prefill_budget> prefill_budget_; ///< where the limits ask for it
  sequence_groups groups_;
  prefix_cache_client prefixes_;
  step_pipeline pipeline_;
  tier_client fetches_;
  std::vector<sequence_id> departed_; ///< for take_left()
  std::vector<block_spill> spills_;   ///< for the next plan
  std::vector<block_copy> copies_;    ///< for the next plan: the last one computes what is copied

  phase phase_ = phase::begin;
  bool awaiting_grant_ = false;
  bool fetches_began_ = false; ///< with the last answer
  bool reset_blocks_ = false;  ///< the next kv_change begins with a reset
  step_decision decision_;     ///< of the step being planned
  kv_grant grant_;             ///< the allocator's last answer
};

} // namespace twill::actors
