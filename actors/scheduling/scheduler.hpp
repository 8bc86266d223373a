// scheduler: decides what the next step computes, by continuous batching.
//
// Pure: no clock, no randomness, no handles; one thread at a time. The scheduler sees sequences
// only as numbers: how many tokens are known, how many are computed, how many KV blocks the
// sequence has. The blocks of a sequence are its lease. `waiting_queue` has the sequences that
// wait, `running_set` those that run, and `step_filler` adds rows (each is one sequence's part) to
// the step that is being planned.
//
// Each of the following rules is applied in the order of service that the admission policy gives.
//
// Steps. A step first takes decodes, with one token each; then prefills under way; then admissions,
// all within max_step_tokens. A long prompt is cut into chunks. Beside decodes, prompts get at most
// mixed_prompt_tokens, so that running streams keep their pace. A sequence for which
// log-probabilities of the prompt are asked gets no more tokens than there are rows of logits left.
// Steps are planned ahead of their results, so a sequence that leaves keeps its blocks until no
// outstanding step has a row of it.
//
// Blocks. An admitted sequence gets the blocks for all its known tokens, so that afterwards only
// decodes need more blocks. When a decode finds no block, the sequence served last is preempted
// (see preemption.hpp): it gives up its blocks, and is computed again later from its known tokens.
// The sequence served first can therefore always go on, and every request that fits the pool alone
// ends. Before a plan, the pool may be asked which cached blocks it has of the sequences next in
// line (candidates()). An admitted sequence then begins after its cached blocks, and is granted
// only the blocks that it lacks.
//
// Client limits. A client with a limit has no more sequences in line than it may still run (see
// waiting_queue.hpp).
//
// Choices. The choices of one request share the full blocks of their prompt: the first choice
// computes them, and the sequences of the other choices (the followers) wait for that and then
// begin with its blocks. Each follower gets a copy of the last, partly filled block of the prompt
// if a block is free for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "actors/scheduling/admission_policy.hpp"
#include "actors/scheduling/id_table.hpp"
#include "actors/scheduling/plan_limits.hpp"
#include "actors/scheduling/preemption.hpp"
#include "actors/scheduling/running_set.hpp"
#include "actors/scheduling/scheduled_sequence.hpp"
#include "actors/scheduling/step_decision.hpp"
#include "actors/scheduling/step_filler.hpp"
#include "actors/scheduling/waiting_queue.hpp"

namespace twill::actors {

class scheduler {
public:
  explicit scheduler(const plan_limits& limits,
                     std::unique_ptr<admission_policy> policy = std::make_unique<fcfs_policy>());

  scheduler(const scheduler&) = delete; // its queue refers to its running set
  scheduler& operator=(const scheduler&) = delete;

  void add(const new_sequence& arrived);
  /// Ends a sequence, whether it finished, was cancelled, timed out or failed. Unknown ids are
  /// ignored. Returns whether a step whose result has not come back computes tokens of it.
  bool leave(sequence_id id);
  void pause(sequence_id id);
  void resume(sequence_id id);
  /// Holds a waiting sequence: until unhold(), it is not admitted, candidates() leaves it out, and
  /// later sequences are admitted before it. Unknown ids are ignored.
  void hold(sequence_id id) { set_held(id, true); }
  void unhold(sequence_id id) { set_held(id, false); }

  /// With a prefix cache: returns the sequences that the next plan may admit and that hold no
  /// blocks yet, in order of service.
  void candidates(std::vector<sequence_id>& out);
  /// Returns how many blocks decodes will need in the next one and two steps, as computed by the
  /// last plan().
  decode_blocks blocks_of_next_decodes() const { return next_decodes_; }
  /// Returns how many blocks the next plan may use besides those for decodes and for candidates():
  /// one for each follower that may get a copy, and those for the sequences that the plan may admit
  /// without a look-up.
  std::int64_t further_blocks();
  /// Decides the next step. `hits` says which blocks of sequences of candidates() are cached; a
  /// sequence without a hit is not admitted, and neither is any sequence after it. A decode whose
  /// free block is not ready is left out of the step. While more blocks may be free than
  /// `free` says, no sequence is preempted for lack of blocks.
  void plan(free_blocks free, step_decision& out, std::span<const prefix_hit> hits = {});
  /// In the last plan, a decode was left out although a block for it may be free.
  bool decode_left_out() const { return decode_left_out_; }
  /// In the last plan, the head of the queue was not admitted, although blocks for it may be free,
  /// or because its match was not kept.
  bool head_left_out() const { return head_left_out_; }
  /// Changes the limit for later plans.
  void set_mixed_prompt_tokens(std::int32_t n) { limits_.mixed_prompt_tokens = n; }
  /// Changes the limits for later plans. Allowed only while no sequence runs: before the first load
  /// and after forget_device().
  void set_limits(const plan_limits& limits);
  /// Lowers the number of output tokens that was given to add().
  void shorten(sequence_id id, std::int32_t max_new);
  /// Must be called for each row (one sequence's part) of a step whose result has come back.
  /// `draws` says whether the plan let the row draw a token, and `drew` whether it drew one.
  void row_done(sequence_id id, bool draws, bool drew);
  /// Prefetches memory into the CPU cache: first call prefetch() for a sequence for which
  /// row_done() will soon be called, then prefetch_sequence(), after work on a few other sequences.
  void prefetch(sequence_id id) const { sequences_.prefetch(id); }
  void prefetch_sequence(sequence_id id) const { sequences_.prefetch_value(id); }
  /// The device lost its KV, and no outstanding step will come back: every sequence must be
  /// computed again. The sequences' blocks and the executor's states are gone, and take_released()
  /// does not report them.
  void forget_device();

  /// Moves the sequences released since the last call to `out`.
  void take_released(std::vector<released_sequence>& out);
  bool has_released() const { return !released_.empty(); }

  std::size_t running() const { return running_.size(); }
  bool is_running(sequence_id id) const;
  /// Number of running sequences of a client.
  std::int32_t running_of(std::uint64_t client) const { return running_.of(client); }
  /// The name under which a ledger (a list of who has which resources, config/base/ledger.hpp) has
  /// the KV blocks that the scheduler counts. add_leases() (batcher_core.hpp) adds which sequence
  /// has which of these blocks, as the allocator reports it.
  static constexpr const char* known_kv_blocks = "KV blocks that the scheduler knows of";
  /// Adds what the scheduler and its policy count for their sequences to the ledger.
  void account(ledger& to, const holder_names& name) const;

private:
  void move(const moved_sequence& moved);
  void apply_moves();
  scheduled_sequence* find(sequence_id id);
  template <class F>
  void each_admissible(F&& visit);
  std::int64_t n_followers(sequence_id leader) const;
  void admit(step_filler& step, std::span<const prefix_hit> hits);
  void share_running_set(const shortage& lacking, step_decision& out);
  void preempt(scheduled_sequence& s, step_decision& out);
  void set_paused(sequence_id id, bool paused);
  void set_held(sequence_id id, bool held);
  void fork_followers(sequence_id leader, step_filler& step, step_decision& out);
  void settle(scheduled_sequence& s);
  void return_to_queue(scheduled_sequence& s);
  void remove(scheduled_sequence& s);

  plan_limits limits_;
  std::unique_ptr<admission_policy> policy_;
  id_table<scheduled_sequence> sequences_;
  running_set running_;
  waiting_queue queue_{running_};
  service_order holding_; ///< waiting or paused sequences that hold blocks: forked followers
  std::vector<moved_sequence> moves_; ///< used within apply_moves() only, and empty otherwise
  bool head_starved_ = false;         ///< the last plan did not admit the head, for lack of blocks
  bool decode_left_out_ = false, head_left_out_ = false;
  decode_blocks next_decodes_;
  std::vector<sequence_id> leaders_under_way_; ///< the last plan has a part of their prompt
  std::set<std::pair<sequence_id, sequence_id>> followers_; ///< (leader, follower)
  std::vector<released_sequence> released_;
};

} // namespace twill::actors
