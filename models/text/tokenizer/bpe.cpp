#include "models/text/tokenizer/bpe.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <queue>
#include <tuple>

#include "config/base/assert.hpp"

namespace twill::models {
namespace {

std::uint64_t pair_key(token_id left, token_id right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
         static_cast<std::uint32_t>(right);
}

} // namespace

bpe::bpe(std::size_t n_merges) {
  std::size_t size = 16;
  while (size < 2 * n_merges)
    size *= 2;
  table_.resize(size);
}

std::size_t bpe::slot(std::uint64_t pair) const {
  const std::size_t mask = table_.size() - 1;
  // Fibonacci hashing: the high bits of the product are well mixed.
  std::size_t at = static_cast<std::size_t>((pair * 0x9E3779B97F4A7C15ULL) >> 24) & mask;
  while (table_[at].pair != no_pair && table_[at].pair != pair)
    at = (at + 1) & mask;
  return at;
}

void bpe::add_merge(token_id left, token_id right, std::int32_t rank, token_id merged) {
  TWILL_ASSERT(left >= 0 && right >= 0, "a merge needs two tokens");
  const std::uint64_t pair = pair_key(left, right);
  rule& r = table_[slot(pair)];
  if (r.pair == no_pair) r = {pair, rank, merged};
  n_ranks_ = std::max(n_ranks_, rank + 1);
}

const bpe::rule* bpe::find(token_id left, token_id right) const {
  const rule& r = table_[slot(pair_key(left, right))];
  return r.pair == no_pair ? nullptr : &r;
}

void bpe::merge(std::vector<token_id>& symbols) const {
  if (symbols.size() <= short_word)
    merge_short(symbols);
  else if (symbols.size() < huge_word || !merge_by_rank(symbols))
    merge_long(symbols);
}

bool bpe::merge_by_rank(std::vector<token_id>& symbols) const {
  constexpr std::int32_t none = -1;
  const auto n = static_cast<std::int32_t>(symbols.size());
  std::vector<token_id> ids = symbols;
  std::vector<std::int32_t> previous(symbols.size()), next(symbols.size());
  std::vector<std::int32_t> ranks(symbols.size()); // rank of the pair that begins at this symbol
  std::vector<std::vector<std::int32_t>> places(static_cast<std::size_t>(n_ranks_));
  std::int32_t current = none;
  const auto queue_pair = [&](std::int32_t at) {
    const rule* r = next[at] == none ? nullptr : find(ids[at], ids[next[at]]);
    ranks[at] = r == nullptr ? none : r->rank;
    if (r == nullptr) return true;
    if (r->rank <= current) return false;
    places[static_cast<std::size_t>(r->rank)].push_back(at);
    return true;
  };
  for (std::int32_t i = 0; i < n; ++i)
    previous[i] = i - 1, next[i] = i + 1 < n ? i + 1 : none;
  for (std::int32_t i = 0; i < n; ++i)
    if (!queue_pair(i)) return false;
  for (current = 0; current < n_ranks_; ++current) {
    auto& found = places[static_cast<std::size_t>(current)];
    if (!std::is_sorted(found.begin(), found.end())) std::sort(found.begin(), found.end());
    for (const std::int32_t at : found) {
      if (ranks[at] != current) continue; // the pair has changed since
      const std::int32_t right = next[at];
      ids[at] = find(ids[at], ids[right])->merged;
      ids[right] = none;
      ranks[right] = none;
      next[at] = next[right];
      if (next[at] != none) previous[next[at]] = at;
      if (!queue_pair(at) || (previous[at] != none && !queue_pair(previous[at]))) return false;
    }
    std::vector<std::int32_t>().swap(found);
  }
  ids.erase(std::remove(ids.begin(), ids.end(), none), ids.end());
  symbols.swap(ids);
  return true;
}

void bpe::merge_short(std::vector<token_id>& symbols) const {
  std::array<const rule*, short_word> rules; // rule of symbols i and i + 1
  std::size_t n = symbols.size();
  for (std::size_t i = 0; i + 1 < n; ++i)
    rules[i] = find(symbols[i], symbols[i + 1]);
  while (n > 1) {
    const rule* best = nullptr;
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < n; ++i)
      if (rules[i] != nullptr && (best == nullptr || rules[i]->rank < best->rank))
        best = rules[i], at = i;
    if (best == nullptr) break;
    symbols[at] = best->merged;
    for (std::size_t i = at + 1; i + 1 < n; ++i)
      symbols[i] = symbols[i + 1], rules[i] = rules[i + 1];
    --n;
    if (at + 1 < n) rules[at] = find(symbols[at], symbols[at + 1]);
    if (at > 0) rules[at - 1] = find(symbols[at - 1], symbols[at]);
  }
  symbols.resize(n);
}

void bpe::merge_long(std::vector<token_id>& symbols) const {
  constexpr std::int32_t none = -1;
  struct link {
    std::int32_t previous, next;
  };
  struct candidate {
    std::int32_t rank, at;
    token_id left, right, merged;
    bool operator>(const candidate& o) const { return std::tie(rank, at) > std::tie(o.rank, o.at); }
  };
  const auto n = static_cast<std::int32_t>(symbols.size());
  std::vector<link> links(symbols.size());
  for (std::int32_t i = 0; i < n; ++i)
    links[i] = {i - 1, i + 1 < n ? i + 1 : none};

  std::vector<candidate> initial;
  initial.reserve(symbols.size());
  const auto candidate_at = [&](std::int32_t left) {
    const std::int32_t right = links[left].next;
    const rule* r = right == none ? nullptr : find(symbols[left], symbols[right]);
    return r == nullptr ? candidate{-1, left, 0, 0, 0}
                        : candidate{r->rank, left, symbols[left], symbols[right], r->merged};
  };
  for (std::int32_t i = 0; i < n; ++i)
    if (const candidate c = candidate_at(i); c.rank >= 0) initial.push_back(c);
  std::priority_queue<candidate, std::vector<candidate>, std::greater<>> queue(std::greater<>{},
                                                                               std::move(initial));
  while (!queue.empty()) {
    const candidate c = queue.top();
    queue.pop();
    const std::int32_t right = links[c.at].next;
    // A pair that has changed since it was queued is stale; absorbed symbols are negative.
    if (symbols[c.at] != c.left || right == none || symbols[right] != c.right) continue;
    symbols[c.at] = c.merged;
    symbols[right] = none;
    links[c.at].next = links[right].next;
    if (links[right].next != none) links[links[right].next].previous = c.at;
    if (const candidate next = candidate_at(c.at); next.rank >= 0) queue.push(next);
    if (links[c.at].previous != none)
      if (const candidate p = candidate_at(links[c.at].previous); p.rank >= 0) queue.push(p);
  }
  symbols.erase(std::remove(symbols.begin(), symbols.end(), none), symbols.end());
}

} // namespace twill::models
