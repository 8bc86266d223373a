// sequence_states: the executor's memory of the sequences in the running set. It turns a step plan
// into a step batch, and drawn tokens into a step result.
//
// One thread (the executor's). A state holds its sequence's tokens, block table and sampler state.
// A decode is planned before its input token is known and finds it here. Drawn tokens are compared
// with the end ids and stop ids here, so that a step that was prepared meanwhile skips the
// sequence. Masks of sequences whose output must look a certain way are filled on a thread of their
// own, between prepare() and executor_step::await_masks().
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "actors/executor/mask_filler.hpp"
#include "actors/executor/output_guard.hpp"
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
  void clear();

private:
  struct state {
    sequence_spec spec;
    std::vector<std::int32_t> tokens; ///< prompt and output
    std::vector<std::int32_t> blocks;
    std::vector<gpu::token_count> counts; ///< ascending by id; kept only when a penalty is on
    std::vector<gpu::token_bias> biases;  ///< one entry per id
    /// `biases` with the stop ids banned as well; used before min_tokens.
    std::vector<gpu::token_bias> early_biases;
    std::vector<gpu::token_bias> draw_biases; ///< the others and bans of bad words; used when any
    std::optional<output_guard> guard;
    std::vector<std::uint32_t> mask; ///< the guard's, for the step under way
    bool stuck = false;              ///< the guard refused what was drawn before
    bool finished = false;

    std::size_t n_output() const { return tokens.size() - spec.prompt->size(); }
    bool counted() const;
    void count(std::int32_t id, bool output);
    void ban_bad_words(std::span<const gpu::token_bias> others);
    draw_spec draw();
  };

  void open(const open_sequence& opened);
  void add_row(const planned_row& row, state& s, executor_step& out);
  void add_scores(executor_step& out);
  void finish_scores(const step_samples& drawn, step_result& out) const;
  static void fill_tables(const std::vector<const state*>& rows, executor_step& out);

  std::unordered_map<sequence_id, state> states_;
  std::vector<const state*> in_step_;       ///< states of the rows in the batch; reused
  std::vector<const planned_row*> drawing_; ///< rows of the step that draw, in order
  struct scored_row {
    const state* sequence;
    sequence_id id;
    std::int32_t position;  ///< of the token whose score it is
    std::int32_t logit_row; ///< index of the token before it in the batch
  };
  std::vector<scored_row> scoring_;
  mask_filler masks_; ///< last, so that its thread ends before the states do
};

} // namespace twill::actors
