// sequence_states: the executor's memory of the sequences in the running set. It turns a step plan
// into a step batch, and drawn tokens into a step result.
//
// One thread (the executor's). A state holds its sequence's tokens, block table and sampler state.
// A decode is planned before its input token is known and finds it here. Drawn tokens are compared
// with the end ids and stop ids here, so that a step that was prepared meanwhile skips the
// sequence.
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
  /// Spans in the batch point into the states and are valid until the next call.
  void prepare(const step_plan& plan, executor_step& out);
  /// Appends the tokens that the step drew to their sequences, and reports them in `out`.
  void finish(const step_plan& plan, const step_samples& drawn, step_result& out);
  void clear() { states_.clear(); }

private:
  struct state {
    sequence_spec spec;
    std::vector<std::int32_t> tokens; ///< prompt and output
    std::vector<std::int32_t> blocks;
    std::vector<gpu::token_count> counts; ///< ascending by id; kept only when a penalty is on
    std::vector<gpu::token_bias> biases;  ///< one entry per id
    /// `biases` with the stop ids banned as well; used before min_tokens.
    std::vector<gpu::token_bias> early_biases;
    bool finished = false;

    std::size_t n_output() const { return tokens.size() - spec.prompt->size(); }
    bool counted() const;
    void count(std::int32_t id, bool output);
    draw_spec draw() const;
  };

  void open(const open_sequence& opened);
  void add_row(const planned_row& row, const state& s, executor_step& out);
  static void fill_tables(const std::vector<const state*>& rows, executor_step& out);

  std::unordered_map<sequence_id, state> states_;
  std::vector<const state*> in_step_;       ///< states of the rows in the batch; reused
  std::vector<const planned_row*> drawing_; ///< rows of the step that draw, in order
};

} // namespace twill::actors
