// prefill_budget: how many prompt tokens a step that also decodes may take, so that running streams
// keep their pace while prompts are read.
//
// It follows how long steps took. A prompt beside decodes may lengthen a step by unnoticed_s, which
// a reader does not notice; where decodes alone take long, it may lengthen the step to three times
// their own time. Pure; one thread at a time.
#pragma once

#include <cstdint>

namespace twill::actors {

class prefill_budget {
public:
  /// Prompts may always lengthen a step by this many seconds.
  static constexpr double unnoticed_s = 0.075;
  /// Prompts may lengthen a step by this many times the time of its decodes.
  static constexpr double stretch = 2;
  /// The budget before anything was measured.
  static constexpr std::int32_t at_first = 128;
  /// The budget is a multiple of this and never less.
  static constexpr std::int32_t least = 16;

  explicit prefill_budget(std::int32_t max_step_tokens) : most_(max_step_tokens) {}

  /// A step with so many decodes and prompt tokens was computed in `seconds`.
  void note_step(std::int32_t decodes, std::int32_t prompt_tokens, double seconds);
  /// Prompt tokens that the next step may take beside decodes.
  std::int32_t prompt_tokens() const;

private:
  std::int32_t most_;
  double decodes_s_ = 0;      ///< moving average of steps that only decode; 0: not measured yet
  double prompt_token_s_ = 0; ///< moving average of what a prompt token adds; 0: not measured yet
};

} // namespace twill::actors
