// sequence_states: the executor's memory of the sequences in the running set, and the way from a
// step plan to a step batch and from drawn tokens back to a step result.
//
// One thread (the executor's). A slot holds its sequence's tokens, block table and sampler state,
// so that a decode planned before its input token was known finds it here. After each step the slot
// checks for end ids and stop ids itself: a step that was prepared meanwhile skips it.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "actors/executor/step_runner.hpp"
#include "actors/messages.hpp"

namespace twill::actors {

class sequence_states {
public:
  /// Applies the plan's closes, opens and grows, then describes its rows; `draws` may be empty.
  /// Spans in the batch point into the slots: valid until the next call.
  void prepare(const step_plan& plan, step_batch& out);
  /// Takes in what the step drew and reports it.
  void finish(const step_plan& plan, const step_samples& drawn, step_result& out);
  void clear() { states_.clear(); }

private:
  struct state {
    sequence_spec spec;
    std::vector<std::int32_t> tokens; ///< prompt and output
    std::vector<std::int32_t> blocks;
    std::vector<gpu::token_count> counts;      ///< by id; only kept when a penalty is on
    std::vector<gpu::token_bias> biases;       ///< one entry per id
    std::vector<gpu::token_bias> early_biases; ///< the same with the end ids banned, for min_tokens
    bool finished = false;

    std::size_t n_output() const { return tokens.size() - spec.prompt->size(); }
    bool counted() const;
    void count(std::int32_t id, bool output);
    draw_spec draw() const;
  };

  void open(const open_sequence& opened);
  void add_row(const planned_row& row, const state& s, step_batch& out);
  static void fill_tables(const std::vector<const state*>& rows, step_batch& out);

  std::unordered_map<sequence_id, state> states_;
  std::vector<const state*> in_step_;       ///< reused
  std::vector<const planned_row*> drawing_; ///< rows of the step that draw, in order
};

} // namespace twill::actors
