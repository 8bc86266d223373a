// scheduler: decides what the next step holds. Continuous batching, first come first served.
//
// Pure: no clock, no randomness, no handles; one thread at a time. It knows sequences only as
// numbers: how many tokens are known, how many are computed, how many blocks are leased.
//
// Rules. Decodes first, each one token; then prefills under way, then admissions, in order of
// arrival, within max_step_tokens (a long prompt is cut into chunks, beside decodes into shorter
// ones, so that these keep their pace). An admission leases the
// blocks of all its known tokens, so that only decodes grow afterwards. When a decode finds no
// block, the youngest holder is preempted: it gives up its blocks and is computed again later from
// its known tokens (paused ones are taken first). The oldest sequence can therefore always go on,
// and every request that fits the pool alone ends. The choices of one request share the full blocks
// of their prompt: the first choice computes them, the others wait for that and then fork its
// lease. Before a plan the pool may be asked which blocks of the sequences next in line it has
// cached (candidates()); an admission then begins after those, and only what they lack is granted.
// Steps are planned ahead of their results: a sequence that leaves keeps its blocks until no
// outstanding step has a row of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace twill::actors {

/// Names a sequence and says when it came: a smaller id is older.
using sequence_id = std::uint64_t;

struct plan_limits {
  std::int32_t max_step_tokens = 512;
  std::int32_t max_running = 256; ///< lowered to max_step_tokens where that is less
  std::int32_t block_tokens = 16;
  bool prefix_cache = false; ///< whoever begins without blocks is admitted with a prefix_hit only
  /// Of prompts, in a step that decodes as well; 0: as many as fit. See set_mixed_prompt_tokens().
  std::int32_t mixed_prompt_tokens = 0;
};

struct new_sequence {
  sequence_id id = 0;
  sequence_id leader = 0;         ///< first choice of the same request, added before; 0: this one
  std::int32_t prompt_tokens = 0; ///< at least 1
  std::int32_t max_new = 0;       ///< at least 1
};

/// One sequence's part of a step: positions [first_position, first_position + n_tokens).
struct planned_row {
  sequence_id id = 0;
  std::int32_t first_position = 0;
  std::int32_t n_tokens = 0;
  bool draws = false; ///< its last token's logits yield a new token
};

struct lease_growth {
  sequence_id id = 0;
  std::int32_t n_blocks = 0;
};

struct lease_fork {
  sequence_id id = 0;
  sequence_id from = 0;
  std::int32_t n_blocks = 0; ///< the first n_blocks of `from`, shared
};

/// What the pool has cached of a candidate: it may begin with these full blocks.
struct prefix_hit {
  sequence_id id = 0;
  std::int32_t n_blocks = 0;    ///< of its known tokens but the last, at most
  std::int32_t n_evictable = 0; ///< of these, counted as free: not for hits before this one
};

/// What plan() decided. `rows` may be empty.
struct decision {
  std::vector<sequence_id> opened; ///< entered the running set
  std::vector<planned_row> rows;
  std::vector<sequence_id> reuses; ///< leases that begin with a hit's blocks; before all grows
  std::vector<lease_growth> grows;
  std::vector<lease_fork> forks;
  std::int32_t preempted = 0;
};

/// A sequence that left the running set or the engine, no longer referred to by any step.
struct released {
  sequence_id id = 0;
  bool leased = false; ///< its lease must be dropped
  bool opened = false; ///< the executor holds its state
  bool gone = false;   ///< for good; otherwise it waits for its turn again
};

class scheduler {
public:
  explicit scheduler(const plan_limits& limits);

  void add(const new_sequence& added);
  /// The one way out: finished, cancelled, timed out and failed alike. Unknown ids are ignored.
  void leave(sequence_id id);
  void pause(sequence_id id);
  void resume(sequence_id id);

  /// Who may be admitted by the next plan and holds nothing yet, in order; with a prefix cache.
  void candidates(std::vector<sequence_id>& out) const;
  /// Decides the next step; `free_blocks` is what the pool can grant now, `hits` its answer for
  /// candidates(), in their order.
  void plan(std::int64_t free_blocks, decision& out, std::span<const prefix_hit> hits = {});
  /// Changes mixed_prompt_tokens for the plans to come.
  void set_mixed_prompt_tokens(std::int32_t prompt_tokens) {
    limits_.mixed_prompt_tokens = prompt_tokens;
  }
  /// A row of an outstanding step came back. `draws` as planned; `drew`: it did bring a token.
  void row_done(sequence_id id, bool draws, bool drew);
  /// The device lost its KV and no outstanding step will come back: everything is to be computed
  /// again. Leases and the executor's states are void, nothing of them is reported as released.
  void forget_device();

  /// Moves what has been released since the last call to `out`.
  void take_released(std::vector<released>& out);
  bool has_released() const { return !released_.empty(); }

  std::size_t running() const { return running_.size(); }
  std::size_t waiting() const { return waiting_.size() + held_.size(); }
  bool is_running(sequence_id id) const { return running_.count(id) != 0; }

private:
  struct sequence {
    sequence_id leader = 0;
    std::int32_t prompt = 0;
    std::int32_t max_new = 0;
    std::int32_t delivered = 0; ///< tokens drawn and returned
    std::int32_t drawing = 0;   ///< tokens that outstanding steps will draw
    std::int32_t computed = 0;  ///< positions with KV once outstanding steps are done
    std::int32_t blocks = 0;
    std::int32_t shared = 0;    ///< of these, shared when the lease began
    std::int32_t in_flight = 0; ///< outstanding rows
    bool paused = false;
    bool opened = false;
    enum class exit : std::uint8_t { none, preempted, gone } leaving = exit::none;

    std::int32_t known() const { return prompt + delivered + drawing; }
    std::int32_t remaining() const { return known() - computed; }
    bool schedulable() const {
      return !paused && leaving == exit::none && delivered + drawing < max_new && remaining() > 0;
    }
  };
  using table = std::map<sequence_id, sequence>;
  struct budget;

  std::int32_t blocks_for(std::int32_t tokens) const;
  sequence* find(sequence_id id, table** where = nullptr);
  void plan_decodes(budget& left, decision& out);
  void plan_prefills(budget& left, decision& out);
  void admit(budget& left, std::span<const prefix_hit> hits, decision& out);
  void open(sequence_id id, sequence& s, const prefix_hit& hit, decision& out);
  void add_row(sequence_id id, sequence& s, std::int32_t n_tokens, decision& out);
  void fork_followers(sequence_id leader, decision& out);
  void make_room(const budget& left, decision& out);
  void preempt(sequence_id id, sequence& s);
  void settle(sequence_id id);

  plan_limits limits_;
  table running_;
  table waiting_;
  table held_;                               ///< choices that wait for their leader's prompt
  std::vector<sequence_id> prompts_planned_; ///< leaders whose prompt the plan being made completes
  std::vector<released> released_;
};

} // namespace twill::actors
