// prefix_cache_client, the batcher's side of the prefix cache, compared with a plain reference:
// which blocks are looked up in the prefix cache, with which cached blocks each sequence begins,
// and that every computed block is reported once.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/batcher/prefix_cache_client.hpp"
#include "tests/catch.hpp"
#include "tests/support/operations.hpp"

namespace {

using namespace twill::actors;
using namespace twill::test;
using ids = std::vector<std::int32_t>;

class client_and_twin {
public:
  explicit client_and_twin(const operation& shape)
      : limits_{shape.a % 8 != 0, 1 + static_cast<std::int32_t>(shape.b % 3),
                static_cast<std::int32_t>(shape.c % 2 * (shape.c / 2 % 14))},
        client_(limits_) {}

  void apply(const operation& o) {
    const std::uint32_t what = o.kind % 16;
    if (what < 3)
      arrive(o);
    else if (what < 6)
      draw(o);
    else if (what < 10)
      compute(o);
    else if (what < 13)
      schedule(o);
    else if (what < 15)
      take_inserts();
    else
      forget_device();
  }

  /// Inserts are taken once, and after that nothing is left to take.
  void end() {
    take_inserts();
    take_inserts();
    client_.take_matches({{1, {0}, 0, {}}});
    forget_device();
    demand(client_.hits(groups_).empty(), "a match is left");
    take_inserts();
  }

private:
  struct known {
    ids tokens; ///< the prompt and the output
    std::int32_t n_prompt = 0;
    bool scored = false;
    std::uint64_t scope = 0;
    std::int32_t n_reported = 0; ///< blocks that were reported to the cache
  };

  bool is_shareable(std::int32_t n_tokens) const {
    return limits_.shareable_length == 0 || n_tokens <= limits_.shareable_length;
  }
  static ids part_of(const ids& tokens, std::int32_t first, std::int32_t last) {
    return {tokens.begin() + first, tokens.begin() + last};
  }
  sequence_id any(const operation& o) const {
    return std::next(sequences_.begin(), o.a % std::ssize(sequences_))->first;
  }

  void arrive(const operation& o) {
    if (sequences_.size() > 5) return;
    known one;
    for (std::uint32_t i = 0; i < 1 + o.a % 12; ++i)
      one.tokens.push_back(static_cast<std::int32_t>(o.b % 3 + i)); // some begin with equal tokens
    one.n_prompt = static_cast<std::int32_t>(one.tokens.size());
    one.scored = o.c % 8 == 0;
    one.scope = o.c % 3;
    submit_prompt prompt;
    prompt.request = 1 + sequences_.size();
    prompt.spec.prompt = std::make_shared<const ids>(one.tokens);
    prompt.spec.prompt_logprobs = one.scored ? 0 : -1;
    prompt.spec.cache_scope = one.scope;
    const sequence_id id = groups_.add(prompt).first;
    sequences_.emplace(id, one);
  }

  void draw(const operation& o) {
    if (sequences_.empty()) return;
    const auto token = static_cast<std::int32_t>(o.b);
    groups_.at(any(o)).output.push_back(token);
    sequences_.at(any(o)).tokens.push_back(token);
  }

  /// A step has computed some of the known tokens, perhaps fewer than an earlier step.
  void compute(const operation& o) {
    if (sequences_.empty()) return;
    const sequence_id id = any(o);
    known& one = sequences_.at(id);
    const auto n = static_cast<std::int32_t>(o.b % (one.tokens.size() + 1));
    client_.note_computed(id, groups_.at(id), n, groups_);
    const std::int32_t n_before = one.n_reported;
    // A block is reported when all its tokens are computed and depend on nothing else.
    prefix_insert noted{id, {}, one.scope};
    while (limits_.enabled && is_shareable(one.n_prompt)) {
      const std::int32_t first = one.n_reported * limits_.block_tokens;
      const std::int32_t last = first + limits_.block_tokens;
      if (last > n || !is_shareable(last)) break;
      for (std::int32_t i = first; i < last; ++i)
        noted.tokens.push_back(one.tokens[static_cast<std::size_t>(i)]);
      ++one.n_reported;
    }
    if (!noted.tokens.empty()) inserts_.push_back(noted);
    std::erase_if(matches_, [&](const auto& m) { return is_outdated(m, one, n_before); });
    check_hits();
    demand_equal(groups_.at(id).n_inserted, one.n_reported, "n_inserted");
  }

  /// Whether one of the blocks that `computed` has reported since it had n_before goes on where the
  /// match of a sequence ends.
  bool is_outdated(const prefix_match& m, const known& computed, std::int32_t n_before) const {
    const known& waits = sequences_.at(m.id);
    const auto n = static_cast<std::int32_t>(m.blocks.size());
    const std::int32_t longer = (n + 1) * limits_.block_tokens;
    const auto n_tokens = static_cast<std::int32_t>(waits.tokens.size());
    return n_before <= n && n < computed.n_reported && waits.scope == computed.scope &&
           !waits.scored && is_shareable(n_tokens) && longer < n_tokens &&
           part_of(waits.tokens, 0, longer) == part_of(computed.tokens, 0, longer);
  }

  void take_inserts() {
    const auto are = client_.take_inserts();
    demand_equal(are.size(), inserts_.size(), "the number of inserts");
    for (std::size_t i = 0; i < are.size(); ++i) {
      demand_equal(are[i].id, inserts_[i].id, "the sequence of an insert");
      demand_equal(are[i].scope, inserts_[i].scope, "the scope of an insert");
      demand(are[i].tokens == inserts_[i].tokens, "an insert has other tokens");
    }
    inserts_.clear();
  }

  /// Asks for candidates, leaves some out, and begins some of the rest.
  void schedule(const operation& o) {
    std::vector<sequence_id> candidates;
    for (const auto& [id, one] : sequences_)
      if (o.a >> id & 1) candidates.push_back(id);
    if (o.a % 2 == 0) std::reverse(candidates.begin(), candidates.end());
    const auto queries = client_.queries(candidates, groups_);
    demand_equal(queries.size(), candidates.size(), "the number of queries");
    std::vector<prefix_match> matches;
    std::int32_t block = 0;
    for (std::size_t i = 0; i < queries.size(); ++i) {
      const known& one = sequences_.at(candidates[i]);
      // The last token is always computed, so only whole blocks before it may be cached.
      auto n = static_cast<std::int32_t>(one.tokens.size());
      do
        --n;
      while (n % limits_.block_tokens != 0);
      if (!is_shareable(static_cast<std::int32_t>(one.tokens.size())) || one.scored) n = 0;
      demand_equal(queries[i].id, candidates[i], "the sequence of a query");
      demand_equal(queries[i].scope, one.scope, "the scope of a query");
      demand(queries[i].tokens == part_of(one.tokens, 0, n), "a query has other tokens");
      const auto width = static_cast<std::size_t>(limits_.block_tokens);
      demand_equal(static_cast<std::size_t>(queries[i].n_blocks),
                   one.tokens.size() / width + (one.tokens.size() % width > 0 ? 1 : 0), "n_blocks");
      prefix_match match{candidates[i], {}, static_cast<std::int32_t>(o.c % 3), {}};
      const auto found = static_cast<std::uint32_t>(n / limits_.block_tokens) + 1;
      for (std::uint32_t k = 0; k < (o.b >> i) % found; ++k)
        match.blocks.push_back(block++);
      matches.push_back(match);
    }
    client_.take_matches(matches);
    const auto is_left_out = [&](const prefix_match& m) { return (o.c >> m.id & 1) != 0; };
    client_.leave_out(is_left_out);
    std::erase_if(matches, is_left_out);
    matches_ = matches;
    for (const prefix_match& m : matches_) { // some blocks of this prefix were fetched before
      auto& fetched = groups_.at(m.id).fetched;
      fetched.first = static_cast<std::int32_t>(o.b % 4);
      fetched.blocks.assign(o.c % 4, nullptr);
    }
    check_hits();
    std::vector<sequence_id> opened;
    for (const auto& [id, one] : sequences_) // some of these sequences were not looked up
      if ((o.b >> id & 1) == 0) opened.push_back(id);
    if (o.c / 64 % 4 == 0) std::reverse(opened.begin(), opened.end());
    begin(opened);
    if (o.c / 256 % 4 == 0) {
      client_.drop_matches();
      matches_.clear();
    }
    check_hits();
  }

  void check_hits() {
    const auto hits = client_.hits(groups_);
    demand_equal(hits.size(), matches_.size(), "the number of hits");
    for (std::size_t i = 0; i < hits.size(); ++i) {
      const auto n = static_cast<std::int32_t>(matches_[i].blocks.size());
      demand_equal(hits[i].id, matches_[i].id, "the sequence of a hit");
      demand_equal(hits[i].n_blocks, n, "n_blocks of a hit");
      demand_equal(hits[i].n_evictable, matches_[i].n_evictable, "n_evictable of a hit");
      // Fetched blocks count only if they continue the match without a gap.
      const auto& fetched = groups_.at(matches_[i].id).fetched;
      std::int32_t n_loaded = 0;
      for (auto k = fetched.first; k < fetched.first + std::ssize(fetched.blocks); ++k)
        if (k >= n && fetched.first <= n) ++n_loaded;
      demand_equal(hits[i].n_loaded, n_loaded, "n_loaded of a hit");
    }
  }

  void begin(const std::vector<sequence_id>& opened) {
    std::vector<prefix_match> expected;
    std::int64_t n_evictable = 0;
    for (const sequence_id id : opened) {
      const auto match =
          std::find_if(matches_.begin(), matches_.end(), [&](const auto& m) { return m.id == id; });
      if (match == matches_.end()) continue;
      if (!match->blocks.empty()) {
        expected.push_back(*match);
        n_evictable += match->n_evictable;
      }
      matches_.erase(match);
    }
    const auto begun = client_.begin(opened, groups_);
    demand_equal(begun.n_evictable, n_evictable, "the blocks that could have been evicted");
    demand_equal(begun.reuses.size(), expected.size(),
                 "the number of leases that begin with a match");
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const sequence_id id = expected[i].id;
      demand_equal(begun.reuses[i].id, id, "the sequence of a lease");
      demand(begun.reuses[i].blocks == expected[i].blocks, "a lease begins with other blocks");
      demand(groups_.at(id).blocks == expected[i].blocks, "a table begins with other blocks");
      sequences_.at(id).n_reported = static_cast<std::int32_t>(expected[i].blocks.size());
      demand_equal(groups_.at(id).n_inserted, sequences_.at(id).n_reported,
                   "n_inserted of a lease that begins with a match");
    }
  }

  void forget_device() {
    client_.forget_device();
    groups_.forget_device();
    inserts_.clear();
    matches_.clear();
    for (auto& [id, one] : sequences_)
      one.n_reported = 0;
    demand(client_.hits(groups_).empty(), "a match is left of a device that was lost");
  }

  prefix_cache_limits limits_;
  prefix_cache_client client_;
  sequence_groups groups_;
  std::map<sequence_id, known> sequences_;
  std::vector<prefix_insert> inserts_; ///< noted and not taken yet
  std::vector<prefix_match> matches_;  ///< the matches that were not left out
};

} // namespace

TEST_CASE("computed blocks are reported once, and what may be cached is asked for",
          "[actors][policy]") {
  CHECK(first_failure({3'000, 100'000, 100}, [](const operations& sequence) {
          if (sequence.empty()) return;
          client_and_twin both(sequence.front());
          for (const operation& o : sequence)
            both.apply(o);
          both.end();
        }) == "");
}
