// output_guard: what the output of one sequence may hold next, where a grammar says so.
//
// A guard belongs to its sequence and is used by one thread at a time; the rules are immutable and
// shared by all choices of a request. Where the model reasons first, the grammar begins after the
// reasoning.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "actors/executor/json_space.hpp"
#include "models/text/grammar/matcher.hpp"
#include "models/text/grammar/vocabulary.hpp"

namespace twill::actors {

/// What outputs must keep to.
struct output_rules {
  models::grammar::vocabulary_ptr tokens; ///< what `grammar` was compiled for
  models::grammar::compiled_grammar_ptr grammar;
  bool is_json = false; ///< white space between parts is bounded; it stands as JSON has it
  bool begins_in_reasoning = false;        ///< the prompt ended where reasoning begins
  std::int32_t reasoning_begin_token = -1; ///< with which an output may begin to reason; -1: none
  std::string reasoning_end;               ///< what ends reasoning
};

class output_guard {
public:
  explicit output_guard(std::shared_ptr<const output_rules> rules);

  /// Moves on by a drawn token; false when the rules do not allow it here.
  bool accept(std::int32_t token);
  /// The grammar has ended: nothing may follow.
  bool is_over() const { return matcher_.is_terminated(); }
  /// Fills `mask`, mask_words(rules' vocabulary size) words: which tokens may follow. Not to be
  /// called once is_over(). No token may follow where this step took more than half a second of
  /// processor time: the grammar is so ambiguous there that the next one would hold up everybody.
  void fill_mask(std::span<std::uint32_t> mask);

private:
  enum class phase : std::uint8_t { first_token, reasoning, answer };

  bool answer(std::int32_t token);
  bool reason(const std::string& bytes);
  void forbid_space(std::span<std::uint32_t> mask) const;

  std::shared_ptr<const output_rules> rules_;
  models::grammar::matcher matcher_;
  phase phase_ = phase::answer;
  json_space space_;                        ///< at the end of the answer, where it is JSON
  std::chrono::nanoseconds accept_time_{0}; ///< processor time of the last accept()
  std::string tail_;                        ///< reasoning that may be the beginning of its end
};

} // namespace twill::actors
