// scheduler: decides what the next step computes, by continuous batching.
//
// Pure: no clock, no randomness, no handles; one thread at a time. The scheduler sees sequences
// only as numbers: how many tokens are known, how many are computed, how many blocks are leased.
//
// Each of the following rules is applied in the order of service that the admission policy gives.
//
// Steps. A step first takes decodes, with one token each; then prefills under way; then admissions,
// all within max_step_tokens. A long prompt is cut into chunks. Beside decodes, prompts get at most
// mixed_prompt_tokens, so that running streams keep their pace. A sequence whose prompt is scored
// gets no more tokens than there are rows of logits left. Steps are planned ahead of their results,
// so a sequence that leaves keeps its blocks until no outstanding step has a row of it.
//
// Blocks. An admission leases the blocks of all its known tokens, so that afterwards only decodes
// need more blocks. When a decode finds no block, the sequence served last is preempted (see
// preemption.hpp): it gives up its blocks, and is computed again later from its known tokens. The
// sequence served first can therefore always go on, and every request that fits the pool alone
// ends. Before a plan, the pool may be asked which cached blocks it has of the sequences next in
// line (candidates()). An admission then begins after the cached blocks, and only the blocks that
// it lacks are granted.
//
// Client limits. A client with a limit has no more sequences in line than it may still run, so that
// the line never waits for that client; its other sequences are held back. The limit is the one
// given with the client's last arrival.
//
// Choices. The choices of one request share the full blocks of their prompt: the first choice
// computes them, and the followers wait for that and then fork its lease. Each follower gets a copy
// of the block with the prompt's end if a block is free.
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
  std::int32_t max_running = 256; ///< lowered to max_step_tokens if that is less
  std::int32_t block_tokens = 16;
  bool prefix_cache = false; ///< a sequence without blocks is admitted only with a prefix_hit
  /// The most prompt tokens in a step that also decodes; 0: as many as fit.
  std::int32_t mixed_prompt_tokens = 0;
  std::int32_t max_logit_rows = 256; ///< rows of logits in one step; at least max_running
  bool copies_blocks = false;        ///< the executor can copy one block to another
};

class scheduler {
public:
  explicit scheduler(const plan_limits& limits,
                     std::unique_ptr<admission_policy> policy = std::make_unique<fcfs_policy>());

  void add(const new_sequence& arrived);
  /// Ends a sequence, whether it finished, was cancelled, timed out or failed. Unknown ids are
  /// ignored. Returns whether an outstanding step has a row of it.
  bool leave(sequence_id id);
  void pause(sequence_id id);
  void resume(sequence_id id);
  /// Holds a waiting sequence: it is neither admitted nor a candidate until unhold(), and later
  /// sequences pass it. Unknown ids are ignored.
  void hold(sequence_id id) { set_held(id, true); }
  void unhold(sequence_id id) { set_held(id, false); }

  /// With a prefix cache: returns the sequences that the next plan may admit and that hold no
  /// blocks yet, in order of service.
  void candidates(std::vector<sequence_id>& out);
  /// Decides the next step. `free_blocks` is the number of blocks that the pool can grant now;
  /// `hits` are its answers for candidates(), in the same order.
  void plan(std::int64_t free_blocks, step_decision& out, std::span<const prefix_hit> hits = {});
  /// Changes the limit for later plans.
  void set_mixed_prompt_tokens(std::int32_t n) { limits_.mixed_prompt_tokens = n; }
  /// Changes the sizes for later plans. Allowed only while nothing runs: the device was lost, or
  /// there was none yet.
  void set_limits(const plan_limits& limits);
  /// Lowers the number of output tokens that was given to add().
  void shorten(sequence_id id, std::int32_t max_new);
  /// A row of an outstanding step came back. `draws` is as planned; `drew` says whether the row
  /// yielded a token.
  void row_done(sequence_id id, bool draws, bool drew);
  /// Prefetches memory into the CPU cache: first call prefetch() for a sequence of which a row will
  /// soon be done, then, some rows later, expect_sequence().
  void prefetch(sequence_id id) const { sequences_.prefetch(id); }
  void expect_sequence(sequence_id id) const { sequences_.expect_value(id); }
  /// The device lost its KV, and no outstanding step will come back: every sequence must be
  /// computed again. Leases and the executor's states are void, and none of them is reported as
  /// released.
  void forget_device();

  /// Moves the sequences released since the last call to `out`.
  void take_released(std::vector<released_sequence>& out);
  bool has_released() const { return !released_.empty(); }

  std::size_t running() const { return running_.size(); }
  bool is_running(sequence_id id) const;
  /// Number of running sequences of a client.
  std::int32_t running_of(std::uint64_t client) const;
  /// Adds what the scheduler and its policy count for their sequences to the ledger. The
  /// allocator's leases name the holders of the blocks that the scheduler counts.
  static constexpr const char* known_kv_blocks = "KV blocks that the scheduler knows of";
  void account(ledger& to, const holder_names& name) const;

private:
  struct budget;
  /// A client's part of the running set.
  struct share {
    std::int32_t running = 0;
    std::int32_t weight = 1;
  };
  /// The waiting, not paused sequences of a client with a limit.
  struct limited_line {
    /// sequences that are also in waiting_, as many as the client may still run
    service_order in_line;
    service_order held_back; ///< the other sequences, all of which are served later
  };

  /// A client that has sequences in the scheduler.
  struct known_client {
    std::int32_t sequences = 0;
    std::int32_t most_running = 0; ///< given with its last arrival; 0: no limit of its own
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
  service_order waiting_; ///< the line: waiting sequences that are not paused, held or held back
  service_order paused_;  ///< waiting sequences that are paused or held
  service_order holding_; ///< waiting or paused sequences that hold blocks: forked followers
  std::unordered_map<std::uint64_t, share> running_of_; ///< by client
  std::unordered_map<std::uint64_t, limited_line> limited_;
  std::unordered_map<std::uint64_t, known_client> clients_;
  std::vector<moved_sequence> moves_; ///< used within apply_moves() only, and empty otherwise
  bool head_starved_ = false;         ///< the last plan had no blocks for the head of the queue
  std::set<std::pair<sequence_id, sequence_id>> followers_; ///< (leader, follower)
  std::vector<sequence_id> prompts_planned_; ///< leaders whose prompt the current plan completes
  std::vector<released_sequence> released_;
};

} // namespace twill::actors
