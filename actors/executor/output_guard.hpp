// output_guard: decides which tokens the output of one sequence may hold next, if a grammar
// constrains it.
//
// A guard belongs to its sequence and is used by one thread at a time. The rules (output_rules) are
// immutable and shared by all choices of a request. If the model reasons first, the grammar applies
// after the reasoning.
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

/// The rules that an output must follow.
struct output_rules {
  models::grammar::vocabulary_ptr tokens; ///< the vocabulary for which `grammar` was compiled
  models::grammar::compiled_grammar_ptr grammar;
  bool is_json = false; ///< the output is JSON: white space between its parts is bounded
  bool begins_in_reasoning = false; ///< the prompt ends with the beginning of reasoning
  /// the token with which an output may begin reasoning; -1: none
  std::int32_t reasoning_begin_token = -1;
  std::string reasoning_end; ///< the text that ends reasoning
};

class output_guard {
public:
  explicit output_guard(std::shared_ptr<const output_rules> rules);

  /// Takes a drawn token; returns false if the rules do not allow it here.
  bool accept(std::int32_t token);
  /// Whether the grammar has ended, so that no token may follow.
  bool is_over() const { return matcher_.is_terminated(); }
  /// Fills the bitmap `mask` (mask_words(rules' vocabulary size) words) with the tokens that may
  /// follow. Must not be called once is_over() is true. If this call and the last accept() together
  /// take more than half a second of processor time, no bit is set, which ends the sequence: the
  /// grammar is so ambiguous there that in its next steps the sequence would hold up all others.
  void fill_mask(std::span<std::uint32_t> mask);

private:
  enum class phase : std::uint8_t { first_token, reasoning, answer };

  bool answer(std::int32_t token);
  bool reason(const std::string& bytes);
  void forbid_space(std::span<std::uint32_t> mask) const;

  std::shared_ptr<const output_rules> rules_;
  models::grammar::matcher matcher_;
  phase phase_ = phase::answer;
  json_space space_;                        ///< white space at the end of the answer, if it is JSON
  std::chrono::nanoseconds accept_time_{0}; ///< processor time of the last accept()
  std::string tail_; ///< end of the reasoning so far, which may be a part of its end text
};

} // namespace twill::actors
