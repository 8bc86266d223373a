// Sampling as team kernels for devices: one team per row. Any backend runs them.
#pragma once

#include "gpu/sampling/detail/sample_passes.hpp"
#include "gpu/sampling/detail/sample_row.hpp"

namespace twill::gpu::detail {

/// Teams that hold a copy of their row at a time; bounds the copies.
inline constexpr long sample_teams_at_once = 128;

struct sample_team {
  sample_batch batch;
  long slots; ///< rows slot, slot + slots, ... share one copy buffer
  float* raw; ///< (slots, vocab), or null

  KOKKOS_INLINE_FUNCTION void operator()(const team_member& team) const {
    const team_passes passes{team};
    const long slot = team.league_rank();
    for (long r = slot; r < batch.rows; r += slots)
      sample_one(passes, batch, r, raw == nullptr ? nullptr : raw + slot * batch.vocab);
  }
};

struct argmax_team {
  const float* logits;
  long stride;
  std::int32_t vocab;
  std::int32_t* tokens;

  KOKKOS_INLINE_FUNCTION void operator()(const team_member& team) const {
    const team_passes passes{team};
    const std::int32_t id = passes.argmax(logits + team.league_rank() * stride, vocab);
    passes.single([&] { tokens[team.league_rank()] = id < 0 ? 0 : id; });
  }
};

struct token_logprobs_team {
  const float* logits;
  long stride;
  std::int32_t vocab;
  const std::int32_t* ids;
  float* logprobs;

  KOKKOS_INLINE_FUNCTION void operator()(const team_member& team) const {
    const long r = team.league_rank();
    token_logprob(team_passes{team}, logits + r * stride, vocab, ids[r], logprobs + r);
  }
};

inline sample_batch batch_of(const sample_args& args) {
  return {args.logits.as<float>(),
          args.logits.shape[0],
          args.logits.row_stride,
          static_cast<std::int32_t>(args.logits.shape[1]),
          args.any_logprobs,
          args.max_top,
          args.rows,
          args.tokens,
          args.logprobs,
          args.top_ids,
          args.top_logprobs};
}

inline void launch_sample_team(const sample_args& args, long slots, float* raw) {
  Kokkos::parallel_for("sample", team_range(static_cast<int>(slots), Kokkos::AUTO),
                       sample_team{batch_of(args), slots, raw});
}

inline void launch_argmax_team(const tensor_ref& logits, std::int32_t* tokens) {
  if (logits.shape[0] == 0) return;
  Kokkos::parallel_for("argmax", team_range(static_cast<int>(logits.shape[0]), Kokkos::AUTO),
                       argmax_team{logits.as<const float>(), static_cast<long>(logits.row_stride),
                                   static_cast<std::int32_t>(logits.shape[1]), tokens});
}

inline void launch_token_logprobs_team(const tensor_ref& logits, const std::int32_t* ids,
                                       float* logprobs) {
  if (logits.shape[0] == 0) return;
  Kokkos::parallel_for(
      "token_logprobs", team_range(static_cast<int>(logits.shape[0]), Kokkos::AUTO),
      token_logprobs_team{logits.as<const float>(), static_cast<long>(logits.row_stride),
                          static_cast<std::int32_t>(logits.shape[1]), ids, logprobs});
}

} // namespace twill::gpu::detail
