// bpe: byte-pair merging over token ids, by rank.
//
// The adjacent pair with the lowest rank merges first, the leftmost on a tie (Sennrich et al. 2016,
// arXiv:1508.07909). Build it with add_merge(), then share it: merge() is const and any thread may
// call it. Time is O(n log n) for n symbols, whatever the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/text/tokenizer.hpp"

namespace twill::models {

class bpe {
public:
  explicit bpe(std::size_t n_merges);

  /// Adds the rule that the pair (left, right) becomes `merged`. A pair that is added twice keeps
  /// its first rank.
  void add_merge(token_id left, token_id right, std::int32_t rank, token_id merged);

  /// Merges `symbols` (one word's initial ids) in place.
  void merge(std::vector<token_id>& symbols) const;

private:
  struct rule {
    std::uint64_t pair = no_pair;
    std::int32_t rank = 0;
    token_id merged = 0;
  };
  static constexpr std::uint64_t no_pair = ~std::uint64_t{0};
  static constexpr std::size_t short_word = 48;  ///< words of up to this many symbols are merged by
                                                 ///< scanning, which is then faster than a heap
  static constexpr std::size_t huge_word = 8192; ///< words from this many symbols on are merged by
                                                 ///< rank, because a heap would miss the caches

  const rule* find(token_id left, token_id right) const;
  std::size_t slot(std::uint64_t pair) const;
  void merge_short(std::vector<token_id>& symbols) const;
  void merge_long(std::vector<token_id>& symbols) const;
  /// Merges all pairs of the lowest rank, then all of the next rank, and so on. This is used for
  /// words so long that a heap would miss the CPU's caches. Returns false and leaves `symbols`
  /// unchanged if a merge creates a pair whose rank was already processed; with trained merges this
  /// never happens.
  bool merge_by_rank(std::vector<token_id>& symbols) const;

  std::int32_t n_ranks_ = 0; ///< one more than the highest rank
  std::vector<rule> table_;  ///< open addressing; the size is a power of two, at most half is used
};

} // namespace twill::models
