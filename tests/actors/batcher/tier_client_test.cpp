// tier_client, which asks for evicted KV blocks to be fetched from host memory or disk, compared
// with a plain reference that remembers every call: which fetches are worth their time, how long
// each may take, and which sequences wait for one.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "actors/batcher/tier_client.hpp"
#include "tests/catch.hpp"
#include "tests/support/operations.hpp"

namespace {

using namespace twill::actors;
using namespace twill::test;
using std::chrono::milliseconds;

/// Seconds for one block: the last measure counts a quarter, those before it the rest. 0: none.
double average_of(const std::vector<double>& measures) {
  double average = 0;
  for (const double one : measures)
    average = average == 0 ? one : average + (one - average) / 4;
  return average;
}

class speeds_and_twin {
public:
  explicit speeds_and_twin(const operation& shape)
      : block_tokens_(1 + static_cast<std::int32_t>(shape.a % 16)), speeds_(block_tokens_) {}

  void apply(const operation& o) {
    const std::size_t n = o.b % 5;
    const double seconds = o.c % 7 * 0.25; // 0 is no measure
    const bool counts = n > 0 && seconds > 0;
    switch (o.kind % 6) {
    case 0: {
      const auto tokens = static_cast<std::int32_t>(o.b % 70);
      speeds_.note_prefill(tokens, seconds);
      if (tokens >= 2 * block_tokens_ && seconds > 0)
        compute_.push_back(seconds / (static_cast<double>(tokens) / block_tokens_));
      break;
    }
    case 1:
      speeds_.note_copies(n, seconds);
      if (counts) copy_.push_back(seconds / static_cast<double>(n));
      break;
    case 2:
      speeds_.note_fetch(n, seconds);
      if (counts) fetch_.push_back(seconds / static_cast<double>(n));
      break;
    case 3: { // the fetch took at least twice the time of computing the blocks
      speeds_.note_given_up(n, seconds);
      const double least = std::max(seconds, 2 * average_of(compute_) * static_cast<double>(n));
      if (n > 0 && least > 0) fetch_.push_back(least / static_cast<double>(n));
      break;
    }
    default:
      ask(n);
    }
    check_patience(n);
  }

private:
  void ask(std::size_t n) {
    const double compute = average_of(compute_);
    const double fetch = average_of(fetch_) + average_of(copy_);
    bool worth = n > 0 && (compute == 0 || fetch <= compute);
    if (n > 0 && !worth) {
      worth = ++n_slow_ % 16 == 0; // every 16th time the disk is measured again
      if (!worth) ++n_refused_;
    }
    demand_equal(speeds_.worth_fetching(n), worth, "worth_fetching()");
    demand_equal(speeds_.n_refused(), n_refused_, "n_refused()");
  }
  void check_patience(std::size_t n) const {
    const double compute = average_of(compute_);
    const double ms =
        compute == 0 ? 2000 : std::clamp(2000 * compute * static_cast<double>(n), 250.0, 10000.0);
    const auto is = speeds_.patience(n).count();
    demand(std::abs(static_cast<double>(is) - ms) <= 1,
           "patience() is " + std::to_string(is) + " ms, expected " + std::to_string(ms));
  }

  std::int32_t block_tokens_;
  tier_speeds speeds_;
  std::vector<double> compute_, copy_, fetch_;
  std::uint64_t n_slow_ = 0, n_refused_ = 0;
};

/// The fetches under way, by fetch id.
class fetch_ids_and_twin {
public:
  void apply(const operation& o) {
    const std::uint32_t what = o.kind % 16;
    if (what < 8) {
      const tier_client::fetch one{1 + o.a % 5, now(o), o.c % 9};
      const std::uint64_t fetch_id = client_.begin(one.id, one.asked, one.n_blocks);
      demand(fetch_id != 0 && fetch_ids_.insert(fetch_id).second, "a fetch id was given before");
      under_way_[fetch_id] = one;
    } else if (what < 15) {
      if (fetch_ids_.empty()) return;
      const std::uint64_t fetch_id = *std::next(fetch_ids_.begin(), o.a % std::ssize(fetch_ids_));
      end(fetch_id); // this fetch may be over already
      end(fetch_id);
    } else {
      end_all();
    }
  }
  void end_all() {
    std::multiset<sequence_id> expected;
    for (const auto& [fetch_id, one] : under_way_)
      expected.insert(one.id);
    under_way_.clear();
    const auto waited = client_.end_all();
    demand(std::multiset<sequence_id>(waited.begin(), waited.end()) == expected,
           "end_all() gives up others than those that wait");
    demand(client_.end_all().empty(), "something waits after everything was given up");
    for (const std::uint64_t fetch_id : fetch_ids_)
      demand_equal(client_.end(fetch_id).id, sequence_id{0}, "a fetch that was given up");
  }

private:
  static steady_clock::time_point now(const operation& o) {
    return steady_clock::time_point{milliseconds(o.b)};
  }
  void end(std::uint64_t fetch_id) {
    tier_client::fetch expected;
    if (const auto at = under_way_.find(fetch_id); at != under_way_.end()) {
      expected = at->second;
      under_way_.erase(at);
    }
    const tier_client::fetch is = client_.end(fetch_id);
    demand_equal(is.id, expected.id, "the sequence of a fetch");
    demand(is.asked == expected.asked, "a fetch was asked at another time");
    demand_equal(is.n_blocks, expected.n_blocks, "the blocks of a fetch");
  }

  tier_client client_{4};
  std::set<std::uint64_t> fetch_ids_; ///< all ids that were ever given
  std::map<std::uint64_t, tier_client::fetch> under_way_;
};

} // namespace

TEST_CASE("whether a fetch is worth it follows from all that was measured", "[actors][policy]") {
  CHECK(first_failure({2'000, 50'000, 100}, [](const operations& sequence) {
          if (sequence.empty()) return;
          speeds_and_twin both(sequence.front());
          for (const operation& o : sequence)
            both.apply(o);
        }) == "");
}

TEST_CASE("a fetch ends once and names its sequence", "[actors][policy]") {
  CHECK(first_failure({1'000, 30'000, 100}, [](const operations& sequence) {
          fetch_ids_and_twin both;
          for (const operation& o : sequence)
            both.apply(o);
          both.end_all();
        }) == "");
}
