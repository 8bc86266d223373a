// prefill_budget: how many prompt tokens a step that also decodes may take, so that running streams
// keep their pace while prompts are read.
//
// A step that decodes is the gap between two tokens of every stream that it decodes for. The budget
// follows how long steps took, so that steps with prompts end within a target: it is what decodes
// leave of the target, times a share that falls when such a step took longer than the target and
// rises when it did not, by steps whose ratio keeps one in a hundred too long. Where decodes take
// more than half of the target, prompts get as much time as they do, since otherwise prompts would
// wait for as long as many streams run. Pure; one thread at a time.
#pragma once

#include <cstdint>

namespace twill::actors {

class prefill_budget {
public:
  /// Prompts may always lengthen a step by this part of the time of its decodes.
  static constexpr double stretch = 1;
  /// The budget before anything was measured.
  static constexpr std::int32_t at_first = 128;
  /// The budget is a multiple of this and never less.
  static constexpr std::int32_t least = 16;
  /// The least share of the target that is planned for, however often steps take longer.
  static constexpr double least_share = 0.5;

  /// `target_s`: the seconds within which a step with decodes should end.
  prefill_budget(std::int32_t max_step_tokens, double target_s)
      : most_(max_step_tokens), target_s_(target_s) {}

  /// A step with so many decodes and prompt tokens was computed in `seconds`.
  void note_step(std::int32_t decodes, std::int32_t prompt_tokens, double seconds);
  /// Prompt tokens that the next step may take beside decodes.
  std::int32_t prompt_tokens() const;

private:
  std::int32_t most_;
  double target_s_;
  double share_ = 1;          ///< of the target, for which steps are planned
  double decodes_s_ = 0;      ///< moving average of steps that only decode; 0: not measured yet
  double prompt_token_s_ = 0; ///< moving average of what a prompt token adds; 0: not measured yet
};

} // namespace twill::actors
