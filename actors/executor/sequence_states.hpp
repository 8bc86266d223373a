// sequence_states: the executor's states of the sequences in the running set. The class turns a
// step plan into a step batch, and drawn tokens into a step result.
//
// One thread (the executor's). A state holds its sequence's tokens, block table and sampler state.
// A decode is planned before its input token is known. Its state provides the token, or the index
// of the draw in the step under way that will yield it (step_batch::fed_from). Drawn tokens are
// compared with the end ids and stop ids here. Steps that are prepared after a sequence has ended
// skip its row (its part of the step). If a step was prepared before that, the token that it draws
// for the sequence is dropped. The masks of sequences with grammars are filled on a thread of their
// own, between prepare() and executor_step::await_masks().
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
  /// The most steps that may be prepared and not finished.
  static constexpr std::size_t most_under_way = 2;

  /// Whether the plan can be prepared while the step before it is under way. That requires that no
  /// sequence of the plan needs a token of that step on the host (for penalties, bad words or a
  /// grammar), and that none asks for log-probabilities of its prompt or for an embedding.
  bool may_follow(const step_plan& plan) const;
  /// From now on steps compute nothing for these sequences, until a step plan removes their states
  /// (step_plan::closes). The call may come before the plan that creates the states
  /// (step_plan::opens), because a skip_sequences message overtakes plans that wait.
  void skip(std::span<const sequence_id> ids) { departed_.insert(ids.begin(), ids.end()); }
  /// Applies the plan's members `closes`, `opens` and `grows` (which sequences end, which begin,
  /// and which get more KV blocks), then describes its rows in `out`. `out.draws` stays empty if no
  /// row draws a token. Spans in the batch point into the states and are valid until the next call.
  /// The plan must stay at its address until the step is finished.
  void prepare(const step_plan& plan, executor_step& out);
  /// Appends the tokens drawn by the oldest prepared step to their sequences, and reports them in
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
    /// the biases above and bans of bad words; used if there are bad words
    std::vector<gpu::token_bias> draw_biases;
    std::optional<output_guard> guard;
    std::vector<std::uint32_t> mask; ///< mask of the guard, for the step under way
    std::vector<double> sum; ///< sum of the hidden states so far, if their mean is asked for
    /// the guard refused an earlier token, or its grammar ended with one
    bool no_allowed_token = false;
    bool finished = false;
    std::size_t n_drawing = 0; ///< tokens that steps under way will draw; `tokens` gets them later
    std::int32_t draw_index = 0; ///< index of the last such token among the draws of its step

    std::size_t n_tokens() const { return tokens.size() + n_drawing; }
    std::size_t n_output() const { return n_tokens() - spec.prompt->size(); }
    /// Whether every token that the sequence may have is drawn or being drawn.
    bool is_full() const { return n_output() >= static_cast<std::size_t>(spec.max_new); }
    bool counted() const;
    void count(std::int32_t id, bool output);
    void ban_bad_words(std::span<const gpu::token_bias> others);
    draw_spec draw();
  };

  struct scored_row {
    const state* sequence;
    sequence_id id;
    std::int32_t position;  ///< position of the scored token
    std::int32_t logit_row; ///< index in the batch of the token before the scored one
  };
  /// Rows of one sequence whose hidden states are asked for.
  struct pooled_rows {
    state* sequence;
    std::int32_t first_row; ///< index in the batch
    std::int32_t n_rows;
    bool ends; ///< true: these are the sequence's last such rows
  };
  /// What finish() needs of a prepared step.
  struct prepared_step {
    std::vector<const planned_row*> drawing; ///< rows that draw, in order
    std::vector<scored_row> scoring;
    std::vector<pooled_rows> pooling; ///< in the order of rows; entries with `ends` draw no token
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
  std::unordered_set<sequence_id> departed_; ///< sequences whose rows are skipped
  std::vector<const state*> in_step_;        ///< states of the rows in the batch; reused
  std::array<prepared_step, most_under_way> steps_;
  std::size_t oldest_ = 0, n_under_way_ = 0;
  mask_filler masks_; ///< declared last, so that its thread ends before the states are destroyed
};

} // namespace twill::actors
