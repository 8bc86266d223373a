// step_counts: what one finished step adds to the statistics of the engine.
//
// One thread at a time. The counts are gathered sequence by sequence, and added to the stats_board
// all at once, because each update of the board takes its lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "actors/detail/stats_board.hpp"
#include "actors/messages.hpp"

namespace twill::actors {

class step_counts {
public:
  /// The step has computed a row of this many tokens.
  void note_row(std::int32_t n_tokens) {
    (n_tokens == 1 ? decode_tokens_ : prefill_tokens_) += n_tokens;
  }
  /// A prompt of this many tokens is computed: its request has drawn its first token.
  void note_prompt(std::size_t tokens) { prompt_tokens_ += tokens; }
  /// A sequence has drawn a token this long after the one before.
  void note_gap(steady_clock::duration length);

  std::int32_t decode_tokens() const { return decode_tokens_; }
  std::int32_t prefill_tokens() const { return prefill_tokens_; }
  std::int32_t tokens() const { return decode_tokens_ + prefill_tokens_; }
  /// Adds the counts, and what the result itself says, to the statistics.
  void add_to(stats_board& stats, const step_result& result) const;

private:
  /// A gap of this length between two tokens, seen by `n` sequences.
  struct token_gap {
    steady_clock::duration length;
    std::uint64_t n = 0;
  };

  std::vector<token_gap> gaps_;
  std::uint64_t prompt_tokens_ = 0;
  std::int32_t decode_tokens_ = 0, prefill_tokens_ = 0;
};

} // namespace twill::actors
