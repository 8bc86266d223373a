#include "actors/batcher/step_counts.hpp"

#include <chrono>

namespace twill::actors {

/// Most sequences drew their previous tokens in one step, so consecutive gaps are mostly equal.
void step_counts::note_gap(steady_clock::duration length) {
  if (gaps_.empty() || gaps_.back().length != length) gaps_.push_back({length, 0});
  ++gaps_.back().n;
}

void step_counts::add_to(stats_board& stats, const step_result& result) const {
  stats.update([&](engine_stats& s) {
    s.steps += 1;
    s.prompt_tokens += prompt_tokens_;
    s.generation_tokens += result.drawn.size() - result.pooled.size();
    s.device_memory_reserved_bytes = result.memory_used_bytes;
    if (result.streamed) s.streamed = result.streamed;
    observe(s.iteration_tokens, static_cast<double>(tokens()));
    observe(decode_tokens_ == 0    ? s.prefill_step_seconds
            : prefill_tokens_ == 0 ? s.decode_step_seconds
                                   : s.mixed_step_seconds,
            result.seconds);
    for (const token_gap& gap : gaps_)
      observe(s.inter_token_latency_seconds, std::chrono::duration<double>(gap.length).count(),
              gap.n);
  });
}

} // namespace twill::actors
