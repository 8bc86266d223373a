// step_filler: fills one step with rows, until its tokens, its rows of logits or the free blocks
// are used up.
//
// An object has no side effects outside itself; one thread at a time may use it. It lives for one
// plan. A row is one sequence's part of the step. The filler writes the rows, and the KV blocks
// that sequences get, to the step_decision, counts both in the sequences, and notes which resources
// the step lacked. The caller chooses which sequence comes next; running sequences are served in
// their order.
#pragma once

#include <cstdint>
#include <vector>

#include "actors/scheduling/plan_limits.hpp"
#include "actors/scheduling/preemption.hpp"
#include "actors/scheduling/running_set.hpp"
#include "actors/scheduling/scheduled_sequence.hpp"
#include "actors/scheduling/step_decision.hpp"

namespace twill::actors {

class step_filler {
public:
  /// `limits` and `out` must outlive it; the decision must be empty.
  step_filler(const plan_limits& limits, free_blocks blocks, step_decision& out)
      : limits_(limits), out_(out), tokens_(limits.max_step_tokens), blocks_(blocks),
        logit_rows_(limits.max_logit_rows) {}

  /// Adds one token for each running sequence that decodes, and the blocks for them.
  void add_decodes(const running_set& running);
  /// Adds prompt tokens of running sequences. If the step has decodes, these prompt tokens and
  /// those of sequences admitted later in the step are together at most mixed_prompt_tokens.
  void add_prefills(const running_set& running);
  /// Whether tokens are left for another row.
  bool has_tokens() const { return tokens_ > 0; }
  /// Whether rows of logits are left for another row.
  bool has_logit_rows() const { return logit_rows_ > 0; }

  /// Takes n_blocks ready blocks for the first sequence of the queue, and counts its cached blocks
  /// (hit.n_evictable) as no longer free. Takes none and returns false if fewer than `spare` free
  /// blocks would be left, if fewer than n_blocks are ready, or if the hit is not kept; the reason
  /// is noted.
  bool take_blocks_of_head(const priority_key& head, std::int64_t n_blocks, const prefix_hit& hit,
                           std::int64_t spare);
  /// The running set has no place for the head of the queue.
  void note_running_set_full() { lacking_.running_set_full = true; }
  /// Lets a sequence enter the running set, and adds its first row. Its blocks were taken before.
  void admit(scheduled_sequence& s, const prefix_hit& hit);
  /// Takes one ready block for a copy, if more than `spare` blocks are free and no decode lacked a
  /// block.
  bool take_block_of_copy(std::int64_t spare);

  const shortage& lacking() const { return lacking_; }
  /// A decode was left out: no ready block was left for it, but another block is free or may be.
  bool decode_left_out() const { return decode_left_out_; }
  /// The head of the queue was not admitted: too few blocks were ready although others are free or
  /// may be, or its hit was not kept.
  bool head_left_out() const { return head_left_out_; }
  /// The leaders whose prompt this step completes.
  const std::vector<sequence_id>& completed_leaders() const { return completed_leaders_; }
  /// The leaders that have a row in this step and whose prompt a later step completes.
  const std::vector<sequence_id>& other_leaders() const { return other_leaders_; }
  /// The blocks that the sequences which are known to decode next need for one more token each, and
  /// for two.
  decode_blocks blocks_of_next_decodes() const { return next_decodes_; }

private:
  void take_blocks(std::int64_t n) {
    blocks_.all -= n;
    blocks_.ready -= n;
  }
  void open(scheduled_sequence& s, const prefix_hit& hit);
  std::int32_t most_tokens(const scheduled_sequence& s) const;
  void note_next_decodes(const scheduled_sequence& s);
  void add_row(scheduled_sequence& s, std::int32_t n_tokens);

  const plan_limits& limits_;
  step_decision& out_;
  // The resources that are left of the step.
  std::int32_t tokens_;
  free_blocks blocks_;
  std::int32_t logit_rows_;
  shortage lacking_;
  bool decode_left_out_ = false, head_left_out_ = false;
  std::vector<sequence_id> completed_leaders_, other_leaders_;
  decode_blocks next_decodes_;
};

} // namespace twill::actors
