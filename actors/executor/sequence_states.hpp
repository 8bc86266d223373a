// sequence_states: the executor's memory of the sequences in the running set. It turns a step plan
// into a step batch, and drawn tokens into a step result.
//
// One thread (the executor's). A state holds its sequence's tokens, block table and sampler state.
// A decode is planned before its input token is known and finds it here, or says which draw of the
// step under way it is (step_batch::fed_from). Drawn tokens are compared with the end ids and stop
// ids here, so that a step that was prepared meanwhile skips the sequence; what a step drew that
// was prepared even earlier is dropped. Masks of sequences whose output must look a certain way are
// filled on a thread of their own, between prepare() and executor_step::await_masks().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "actors/executor/mask_filler.hpp"
#include "actors/executor/output_guard.hpp"
#include "actors/executor/step_runner.hpp"
#include "actors/messages.hpp"

namespace twill::actors {

class sequence_states {
public:
  /// Steps that may be prepared before the oldest of them is finished.
  static constexpr std::size_t most_under_way = 2;

  /// Whether the plan can be prepared while the step before it is under way: no row needs a token
  /// of that step on the host, for its penalties, its bad words or the form of its output, and none
  /// is scored or pooled.
  bool may_follow(const step_plan& plan) const;
  /// Rows of these sequences are left out of the steps to come, until a plan closes them for good.
  /// They may be opened, also again, later than this is called.
  void skip(std::span<const sequence_id> ids) { departed_.insert(ids.begin(), ids.end()); }
  /// Applies the plan's closes, opens and grows, then describes its rows; `draws` may be empty.
  /// Spans in the batch point into the states and are valid until the next call. The plan stays
  /// where it is until the step is finished.
  void prepare(const step_plan& plan, executor_step& out);
  /// Appends the tokens that the oldest prepared step drew to their sequences, and reports them in
  /// `out`.
  void finish(const step_plan& plan, const step_samples& drawn, step_result& out);
  void clear();
  listed_states list() const;

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
    std::vector<double> sum;         ///< of hidden states so far, where their mean is wanted
    bool no_allowed_token = false;   ///< the guard refused what was drawn before, or ended with it
    bool finished = false;
    std::size_t n_drawing = 0;   ///< tokens that steps under way draw; `tokens` has them later
    std::int32_t draw_index = 0; ///< the number of the last one among the draws of its step

    std::size_t n_tokens() const { return tokens.size() + n_drawing; }
    std::size_t n_output() const { return n_tokens() - spec.prompt->size(); }
    /// Every token that it may have is drawn, or being drawn.
    bool is_full() const { return n_output() >= static_cast<std::size_t>(spec.max_new); }
    bool counted() const;
    void count(std::int32_t id, bool output);
    void ban_bad_words(std::span<const gpu::token_bias> others);
    draw_spec draw();
  };

  struct scored_row {
    const state* sequence;
    sequence_id id;
    std::int32_t position;  ///< of the token whose score it is
    std::int32_t logit_row; ///< index of the token before it in the batch
  };
  /// Rows of one sequence whose hidden states are wanted.
  struct pooled_rows {
    state* sequence;
    std::int32_t first_row; ///< index in the batch
    std::int32_t n_rows;
    bool ends; ///< with them the sequence has all
  };
  /// What finish() must know of a step that was prepared.
  struct prepared_step {
    std::vector<const planned_row*> drawing; ///< rows that draw, in order
    std::vector<scored_row> scoring;
    std::vector<pooled_rows> pooling; ///< in the order of rows; those that end draw no token
    std::vector<sequence_id> skipped;
  };

  void open(const open_sequence& opened);
  void add_row(const planned_row& row, state& s, executor_step& out);
  void add_scores(executor_step& out);
  void add_pooled(const planned_row& row, state& s, const executor_step& out);
  void add_hidden(executor_step& out);
  static void finish_pooled(const prepared_step& step, const step_samples& drawn, step_result& out);
  static void finish_scores(const prepared_step& step, const step_samples& drawn, step_result& out);
  static void fill_tables(const std::vector<const state*>& rows, executor_step& out);
  prepared_step& newest() { return steps_[(oldest_ + n_under_way_ - 1) % most_under_way]; }

  std::unordered_map<sequence_id, state> states_;
  std::unordered_set<sequence_id> departed_; ///< whose rows are skipped
  std::vector<const state*> in_step_;        ///< states of the rows in the batch; reused
  std::array<prepared_step, most_under_way> steps_;
  std::size_t oldest_ = 0, n_under_way_ = 0;
  mask_filler masks_; ///< last, so that its thread ends before the states do
};

} // namespace twill::actors
