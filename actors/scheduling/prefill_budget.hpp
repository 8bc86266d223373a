// prefill_budget: how many tokens of prompts a step that decodes may take, so that streams keep
// their pace while prompts are read.
//
// Goes by how long steps took: a prompt beside decodes may lengthen a step by what a reader does
// not notice, or, where decodes alone take longer than that, to three times their own time. Pure;
// one thread at a time.
#pragma once

#include <cstdint>

namespace twill::actors {

class prefill_budget {
public:
  /// By which a step may be longer, in any case.
  static constexpr double unnoticed_s = 0.075;
  /// Of decodes' own time, as much on top.
  static constexpr double stretch = 2;
  /// Before anything was measured, and never fewer than.
  static constexpr std::int32_t at_first = 128, least = 16;

  explicit prefill_budget(std::int32_t most) : most_(most) {}

  /// A step with as many decodes and tokens of prompts was computed in `seconds`.
  void step_took(std::int32_t decodes, std::int32_t prompt_tokens, double seconds);
  std::int32_t allowance() const;

private:
  std::int32_t most_;
  double decodes_s_ = 0;      ///< of late; 0: not known
  double prompt_token_s_ = 0; ///< what a token of a prompt adds; 0: not known
};

} // namespace twill::actors
