// scheduler: decides what the next step holds, by continuous batching.
//
// Pure: no clock, no randomness, no handles; one thread at a time. It knows sequences only as
// numbers: how many tokens are known, how many are computed, how many blocks are leased.
//
// Rules, each applied in the order of service that the admission policy gives. Decodes come first,
// each with one token; then prefills under way; then admissions, all within max_step_tokens. A long
// prompt is cut into chunks. Beside decodes prompts get mixed_prompt_tokens at most, so that
// running streams keep their pace. A sequence whose prompt is scored gets no more tokens than rows
// of logits are left. An admission leases the blocks of all its known tokens, so that only decodes
// grow afterwards. When a decode finds no block, the sequence served last is preempted (see
// preemption.hpp): it gives up its blocks and is computed again later from its known tokens. The
// sequence served first can therefore always go on, and every request that fits the pool alone
// ends. A client with a limit of its own has no more sequences in line than it may still run, so
// that the line never waits for it; its others are held back; the limit is the one that its last
// arrival came with. The choices of one request share the full blocks of their prompt: the first
// choice computes them, the followers wait for that and then fork its lease. Of the block with the
// prompt's end each gets a copy where a block is free. Before a plan the pool may be asked which
// blocks of the sequences next in line it has cached (candidates()); an admission then begins after
// those, and only the blocks that it lacks are granted. Steps are planned ahead of their results: a
// sequence that leaves keeps its blocks until no outstanding step has a row of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/scheduling/admission_policy.hpp"
#include "actors/scheduling/id_table.hpp"
#include "actors/scheduling/preemption.hpp"
#include "actors/scheduling/scheduled_sequence.hpp"
#include "actors/scheduling/step_decision.hpp"

namespace twill::actors {

struct plan_limits {
  std::int32_t max_step_tokens = 512;
  std::int32_t max_running = 256; ///< lowered to max_step_tokens where that is less
  std::int32_t block_tokens = 16;
  bool prefix_cache = false; ///< a sequence without blocks is admitted with a prefix_hit only
  /// Prompt tokens at most in a step that decodes as well; 0: as many as fit.
  std::int32_t mixed_prompt_tokens = 0;
  std::int32_t max_logit_rows = 256; ///< of one step; at least max_running
  bool copies_blocks = false;        ///< the executor can copy a block to another one
};

class scheduler {
public:
  explicit scheduler(const plan_limits& limits,
                     std::unique_ptr<admission_policy> policy = std::make_unique<fcfs_policy>());

  void add(const new_sequence& arrived);
  /// The one way out: finished, cancelled, timed out and failed sequences leave by it alike.
  /// Unknown ids are ignored. Whether an outstanding step has a row of it.
  bool leave(sequence_id id);
  void pause(sequence_id id);
  void resume(sequence_id id);
  /// A sequence that waits is not admitted, and not a candidate, until it is let go; others pass
  /// it. Unknown ids are ignored.
  void hold(sequence_id id) { set_held(id, true); }
  void unhold(sequence_id id) { set_held(id, false); }

  /// With a prefix cache: the sequences that the next plan may admit and that hold no blocks yet,
  /// in order.
  void candidates(std::vector<sequence_id>& out);
  /// Decides the next step. `free_blocks` is what the pool can grant now, `hits` is its answer for
  /// candidates(), in their order.
  void plan(std::int64_t free_blocks, step_decision& out, std::span<const prefix_hit> hits = {});
  /// Changes the limit for the plans to come.
  void set_mixed_prompt_tokens(std::int32_t n) { limits_.mixed_prompt_tokens = n; }
  /// Other sizes for the plans to come. Legal while nothing runs: a device was lost, or none was
  /// there yet.
  void set_limits(const plan_limits& limits);
  /// Fewer output tokens than were asked for in add().
  void shorten(sequence_id id, std::int32_t max_new);
  /// A row of an outstanding step came back. `draws` is as planned; `drew` says whether the row did
  /// bring a token.
  void row_done(sequence_id id, bool draws, bool drew);
  /// A row of the sequence will soon be done; expect_sequence() is to be said some rows later.
  void prefetch(sequence_id id) const { sequences_.prefetch(id); }
  void expect_sequence(sequence_id id) const { sequences_.expect_value(id); }
  /// The device lost its KV and no outstanding step will come back: every sequence is to be
  /// computed again. Leases and the executor's states are void; none is reported as released.
  void forget_device();

  /// Moves the sequences released since the last call to `out`.
  void take_released(std::vector<released_sequence>& out);
  bool has_released() const { return !released_.empty(); }

  std::size_t running() const { return running_.size(); }
  bool is_running(sequence_id id) const;
  /// Sequences of a client that run.
  std::int32_t running_of(std::uint64_t client) const;
  /// Adds what it and its policy count for the sequences that they know. Who holds the blocks that
  /// it counts, the allocator's leases say.
  static constexpr const char* known_kv_blocks = "KV blocks that the scheduler knows of";
  void account(ledger& to, const holder_names& name) const;

private:
  struct budget;
  /// What a client has in the running set.
  struct share {
    std::int32_t running = 0;
    std::int32_t weight = 1;
  };
  /// The sequences of a client with a limit that wait and are not paused.
  struct limited_line {
    service_order in_line;   ///< those that waiting_ has too, as many as may still run
    service_order held_back; ///< the others, all of which are served later
  };

  /// A client that has sequences here.
  struct known_client {
    std::int32_t sequences = 0;
    std::int32_t most_running = 0; ///< as its last arrival says; 0: no limit of its own
  };

  std::int32_t blocks_for(std::int32_t tokens) const;
  void limit(std::uint64_t client, std::int32_t most_running);
  bool is_limited(const scheduled_sequence& s) const {
    return clients_.at(s.client).most_running > 0;
  }
  std::int64_t prompt_tokens_left() const;
  void enqueue(scheduled_sequence& s);
  void dequeue(scheduled_sequence& s);
  void refill(std::uint64_t client);
  void move(const moved_sequence& moved);
  void apply_moves();
  scheduled_sequence* find(sequence_id id);
  void plan_decodes(budget& left, step_decision& out);
  void plan_prefills(budget& left, step_decision& out);
  void admit(budget& left, std::span<const prefix_hit> hits, step_decision& out);
  void share_running_set(const shortage& lacking, step_decision& out);
  void preempt(scheduled_sequence& s, step_decision& out);
  void set_paused(sequence_id id, bool paused);
  void set_held(sequence_id id, bool held);
  void open(scheduled_sequence& s, const prefix_hit& hit, step_decision& out);
  static std::int32_t most_tokens(const scheduled_sequence& s, const budget& left);
  void add_row(scheduled_sequence& s, std::int32_t n_tokens, budget& left, step_decision& out);
  void fork_followers(sequence_id leader, budget& left, step_decision& out);
  void settle(scheduled_sequence& s);
  void leave_running_set(scheduled_sequence& s);
  void return_to_queue(scheduled_sequence& s);
  void remove(scheduled_sequence& s);

  plan_limits limits_;
  std::unique_ptr<admission_policy> policy_;
  id_table<scheduled_sequence> sequences_;
  running_order running_;
  service_order waiting_; ///< the line: without those that are paused or held back
  service_order paused_;  ///< those that wait and are paused or held
  service_order holding_; ///< those that wait or are paused and hold blocks: forked followers
  std::unordered_map<std::uint64_t, share> running_of_; ///< by client
  std::unordered_map<std::uint64_t, limited_line> limited_;
  std::unordered_map<std::uint64_t, known_client> clients_;
  std::vector<moved_sequence> moves_; ///< empty but in apply_moves()
  bool head_starved_ = false;         ///< the last plan had no blocks for the head of the queue
  std::set<std::pair<sequence_id, sequence_id>> followers_; ///< (leader, follower)
  std::vector<sequence_id> prompts_planned_; ///< leaders whose prompt the plan being made completes
  std::vector<released_sequence> released_;
};

} // namespace twill::actors
