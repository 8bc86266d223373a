// batcher_core: the logic of the batcher without actors: requests and their sequences, block
// tables, step plans out, step results in.
//
// One thread at a time. It talks to sessions through `session_sink` and is driven by
// actors/batcher.cpp, which carries its kv_change and step_plan values to the other actors. A
// sequence's drawn tokens are kept here, so that a preempted sequence, or one whose executor was
// lost, can be computed again.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "actors/detail/stats_board.hpp"
#include "actors/messages.hpp"
#include "actors/scheduling/prefill_budget.hpp"
#include "actors/scheduling/scheduler.hpp"

namespace twill::actors {

struct batcher_limits {
  plan_limits plan;
  bool adapt_prefill_budget = false; ///< plan.mixed_prompt_tokens by how long steps take
  std::int32_t max_queued = 1024;    ///< requests beyond what runs
  std::int64_t total_blocks = 0;
  std::int32_t shareable_length =
      0; ///< longest sequence whose KV is a matter of its tokens; 0: any
};

class batcher_core {
public:
  /// Where answers to sessions go.
  class session_sink {
  public:
    virtual ~session_sink() = default;
    virtual void queued(request_id request) = 0;
    virtual void token(request_id request, token_ready token) = 0;
    /// The last word about a request that did not end by itself.
    virtual void failed(request_id request, const request_error& why) = 0;
    /// The request holds nothing any more.
    virtual void forgotten(request_id request) = 0;
  };

  batcher_core(const batcher_limits& limits, stats_board& stats, session_sink& sessions);

  void submit(const submit_prompt& prompt);
  void finish_choice(request_id request, std::int32_t choice);
  void release(request_id request);
  void pause(request_id request);
  void resume(request_id request);

  /// Leases to drop, to be applied before the next plan; nothing when there are none.
  std::optional<kv_change> take_drops();
  /// The allocator's answer to a change: its counts and matches.
  void note_blocks(kv_grant& answer);
  /// Room for another plan and an executor to run it.
  bool wants_plan() const { return executor_up_ && outstanding_.size() < 2; }
  /// Asks which prefixes of the next admissions are cached; nothing when there is none to ask for.
  /// Answered before plan(), with no other change between.
  std::optional<kv_change> look_up();
  /// Decides a step; nothing when no sequence can be scheduled now (preemptions may have made
  /// take_drops() worth calling again). The change must be granted before make_plan().
  std::optional<kv_change> plan();
  step_plan_ptr make_plan(const kv_grant& grant, steady_clock::time_point now);

  /// Stale results (of an executor that is gone) are ignored.
  void step_done(const step_result& result, steady_clock::time_point now);
  /// The oldest outstanding step fails with its requests; every other sequence is computed again.
  void step_failed(std::uint64_t epoch, const std::string& detail);
  void executor_ready();
  void give_up(const request_error& why);
  /// Writes the gauges.
  void publish();

private:
  struct entry {
    request_id request = 0;
    std::int32_t choice = 0;
    sequence_spec spec;
    std::vector<std::int32_t> output;
    std::vector<std::int32_t> blocks; ///< its table
    std::int32_t n_inserted = 0;      ///< blocks of it whose tokens the allocator was told
    bool finished = false;            ///< its session knows of its end
    steady_clock::time_point scheduled;
    steady_clock::time_point last_token;
  };
  struct request_entry {
    sequence_id first = 0;
    std::int32_t n_choices = 0;
    std::int32_t left = 0;          ///< sequences not yet forgotten
    std::int32_t running = 0;       ///< of these, in the running set
    std::int32_t cached_tokens = 0; ///< of the prompt, when it was first admitted
    bool released = false;
  };

  request_entry* find(request_id request);
  std::int32_t waiting_requests() const;
  void deliver(sequence_id id, entry& e, const drawn_token& drawn, const step_result& result,
               steady_clock::time_point now);
  void fail(request_id request, const request_error& why);
  bool shareable(std::int32_t n_tokens) const;
  std::vector<std::int32_t> known_tokens(const entry& e, std::int32_t first,
                                         std::int32_t last) const;
  void insert_computed(sequence_id id, entry& e, std::int32_t computed);
  void begin_reused(kv_change& change);
  void note_first_admission(const entry& e);
  void forget(const released_sequence& r);
  void lose_executor();

  batcher_limits limits_;
  stats_board& stats_;
  session_sink& sessions_;
  scheduler scheduler_;
  std::optional<prefill_budget> prefill_budget_; ///< where the limits ask for it
  std::unordered_map<sequence_id, entry> sequences_;
  std::unordered_map<request_id, request_entry> requests_;
  sequence_id next_id_ = 1;
  bool executor_up_ = false;
  std::uint64_t epoch_ = 0;
  std::uint64_t step_number_ = 0;
  std::vector<step_plan_ptr> outstanding_; ///< at most 2, oldest first
  step_decision decided_;
  std::vector<sequence_id> candidates_;       ///< reused
  std::vector<prefix_hit> hits_;              ///< reused
  std::vector<prefix_match> matches_;         ///< the answer to look_up()
  std::vector<prefix_insert> prefix_inserts_; ///< for the next kv_change
  std::vector<released_sequence> released_;            ///< reused
  std::vector<sequence_id> closes_;           ///< for the next plan
  std::vector<double> gaps_seconds_;          ///< of the step being handled
  std::int64_t free_blocks_ = 0;
  std::int64_t used_blocks_ = 0;
  bool reset_blocks_ = false; ///< the next kv_change begins with a reset
};

} // namespace twill::actors
