// prefill_budget: how many prompt tokens a step with decodes may take, so that running streams keep
// their pace while prompts are computed.
//
// A step with decodes is the gap between two tokens of each stream that it decodes. The budget is
// adapted to measured step times, so that steps with prompts end within a target time. Steps are
// planned for a share of the target time, and prompts get what decodes leave of it. The share falls
// when a step with decodes and prompts took longer than the target, and rises otherwise. It rises
// so much more slowly than it falls that it settles where one such step in a hundred takes too
// long. If decodes take more than half of the share, prompts get as much time as the decodes do,
// since prompts would otherwise have to wait until fewer streams run. An object has no side effects
// outside itself; one thread at a time may use it.
#pragma once

#include <cstdint>

namespace twill::actors {

class prefill_budget {
public:
  /// Prompts may always take this multiple of the time of a step's decodes.
  static constexpr double stretch = 1;
  /// The budget before anything was measured.
  static constexpr std::int32_t at_first = 128;
  /// The budget is a multiple of this number of tokens, and never less.
  static constexpr std::int32_t least = 16;
  /// The lower bound of the share, however often steps take too long.
  static constexpr double least_share = 0.5;

  /// `target_s`: the seconds within which a step with decodes should end.
  prefill_budget(std::int32_t max_step_tokens, double target_s)
      : most_(max_step_tokens), target_s_(target_s) {}

  /// A step with `decodes` decodes and `prompt_tokens` prompt tokens took `seconds`.
  void note_step(std::int32_t decodes, std::int32_t prompt_tokens, double seconds);
  /// The prompt tokens that the next step may take beside decodes.
  std::int32_t prompt_tokens() const;

private:
  std::int32_t most_;
  double target_s_;
  double share_ = 1; ///< the part of the target for which steps are planned
  /// moving average of the time of steps with decodes only; 0: not measured yet
  double decodes_s_ = 0;
  /// moving average of the time that one prompt token adds; 0: not measured yet
  double prompt_token_s_ = 0;
};

} // namespace twill::actors
