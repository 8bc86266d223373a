// input_budget limits the bytes that all sockets together are receiving, and output_budget the
// output that clients have not read. Both make the same decisions as references that add up all
// sockets anew.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "net/connection/input_budget.hpp"
#include "net/connection/output_budget.hpp"
#include "tests/catch.hpp"
#include "tests/support/operations.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::test;
using namespace std::chrono_literals;

namespace {

using time = std::chrono::steady_clock::time_point;

/// The time per byte at the least allowed rate. Multiples of this time are exact in binary.
constexpr std::chrono::nanoseconds tick = 62'500us;
constexpr std::int64_t bytes_per_s = 16;

/// Which sockets were given up, or cut off, by the code under test.
using names = std::vector<std::size_t>;

/// Checks which sockets lost their data (`cut`) because the total bytes `left` exceeded `enough`.
/// They must be the candidates with the most bytes, largest first, and exactly as many as are
/// needed for the total to fall to `enough`. Of candidates with equal bytes, any may be cut.
void check_cut(const names& cut, std::vector<std::int64_t> bytes, names candidates,
               std::int64_t left, std::int64_t enough) {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](std::size_t a, std::size_t b) { return bytes[a] > bytes[b]; });
  std::size_t n = 0;
  for (; n < candidates.size() && left > enough; ++n) {
    demand(n < cut.size(), "too few sockets were given up");
    demand(std::find(candidates.begin(), candidates.end(), cut[n]) != candidates.end(),
           "socket " + std::to_string(cut[n]) + " was given up without a reason");
    demand(std::count(cut.begin(), cut.end(), cut[n]) == 1, "a socket was given up twice");
    demand_equal(bytes[cut[n]], bytes[candidates[n]], "the bytes of the next socket given up");
    left -= bytes[candidates[n]];
  }
  demand_equal(cut.size(), n, "the number of sockets given up");
}

// Input.

struct message {
  bool begun = false, cut = false;
  std::int64_t bytes = 0, kept_bytes = 0; ///< `kept_bytes`: when the least rate was last kept
  time kept_at{};

  bool is_slow(time now) const {
    return now - kept_at >= 1s && bytes - kept_bytes < (now - kept_at) / tick;
  }
};

class input_fixture {
public:
  explicit input_fixture(std::uint32_t n) : max_(10 + n % 40), budget_(max_, bytes_per_s) {
    for (std::size_t i = 0; i < twins_.size(); ++i)
      renew(i);
  }

  void apply(const operation& op) {
    now_ += tick * (op.c % 4 == 0 ? 0 : op.c % 12);
    const std::size_t i = op.a % twins_.size();
    switch (op.kind % 8) {
    case 0:
      sockets_[i]->clear();
      twins_[i] = {};
      break;
    case 1:
      sockets_[i].reset();
      twins_[i] = {};
      renew(i);
      break;
    case 2: // a message that shrinks, or ends
      set(i, op.b % 3);
      break;
    default:
      set(i, twins_[i].bytes + 1 + op.b % (op.b % 5 == 0 ? 40 : 6));
    }
    compare();
  }

  void end(bool by_destruction) {
    for (std::size_t i = 0; i < sockets_.size(); ++i)
      by_destruction ? sockets_[i].reset() : sockets_[i]->clear();
    demand_equal(budget_.total_bytes(), 0, "the bytes of no messages");
    if (by_destruction) return;
    now_ += 10s;
    given_up_.clear();
    demand(sockets_[0]->set(max_, now_), "the whole budget is free again");
    demand(given_up_.empty(), "for which nobody is given up");
  }

private:
  void renew(std::size_t i) {
    sockets_[i] = std::make_unique<input_budget::account>(budget_);
    sockets_[i]->on_give_up([this, i] { given_up_.push_back(i); });
  }

  std::int64_t sum(bool with_cut) const {
    std::int64_t bytes = 0;
    for (const message& one : twins_)
      if (with_cut || !one.cut) bytes += one.bytes;
    return bytes;
  }

  void set(std::size_t i, std::int64_t bytes) {
    given_up_.clear();
    const bool fits = sockets_[i]->set(bytes, now_);
    message& one = twins_[i];
    if (bytes == 0) {
      one = {};
      demand(fits && given_up_.empty(), "no message always fits");
      return;
    }
    if (!one.begun) one = {.begun = true, .kept_at = now_};
    one.bytes = bytes;
    if (one.bytes - one.kept_bytes >= (now_ - one.kept_at) / tick) {
      one.kept_bytes = one.bytes;
      one.kept_at = now_;
    }
    names slow;
    if (sum(false) > max_ && now_ - looked_at_ >= 100ms) {
      looked_at_ = now_;
      for (std::size_t m = 0; m < twins_.size(); ++m)
        if (twins_[m].begun && !twins_[m].cut && twins_[m].is_slow(now_)) slow.push_back(m);
    }
    std::vector<std::int64_t> held;
    for (const message& each : twins_)
      held.push_back(each.bytes);
    check_cut(given_up_, held, slow, sum(false), max_ / 2);
    for (const std::size_t m : given_up_)
      twins_[m].cut = true;
    const bool expected = !one.cut && sum(false) <= max_ && sum(true) <= 2 * max_;
    demand_equal(fits, expected, "whether a message fits");
    if (!fits) one = {};
  }

  void compare() {
    demand_equal(budget_.total_bytes(), sum(true), "the bytes of all messages");
    demand(sum(true) <= 2 * max_, "all messages are within twice the budget");
    for (std::size_t i = 0; i < twins_.size(); ++i)
      demand_equal(sockets_[i]->is_cut(), twins_[i].cut, "whether a message was given up");
  }

  const std::int64_t max_;
  input_budget budget_;
  std::array<std::unique_ptr<input_budget::account>, 6> sockets_;
  std::array<message, 6> twins_;
  names given_up_;
  time now_{1h}, looked_at_{};
};

// Output.

struct reader {
  std::int64_t bytes = 0, taken = 0;
  bool cut = false;
  std::int64_t seen_taken = -1;
  time seen_at{};
};

class output_fixture {
public:
  explicit output_fixture(std::uint32_t n) : max_(10 + n % 40), budget_(max_) {
    budget_.on_full([this] { ++filled_; });
    for (std::size_t i = 0; i < twins_.size(); ++i)
      renew(i);
  }

  void apply(const operation& op) {
    now_ += 125ms * (op.c % 4 == 0 ? 0 : op.c % 8);
    const std::size_t i = op.a % twins_.size();
    switch (op.kind % 8) {
    case 0:
      set(i, 0, true);
      renew(i);
      break;
    case 1:
    case 2: // the client reads some of the output
      set(i, op.b % (twins_[i].bytes + 1), false);
      twins_[i].taken += 1;
      sockets_[i]->taken() += 1;
      break;
    case 3:
    case 4:
      relieve();
      break;
    default:
      set(i, twins_[i].bytes + op.b % (op.b % 7 == 0 ? 3 * max_ : 12), false);
    }
    demand_equal(budget_.total_bytes(), sum(true), "the output of all sockets");
    demand_equal(budget_.full(), sum(true) > max_, "whether the output is too much");
    demand_equal(filled_, expected_filled_, "how often the budget was filled");
  }

  void end() {
    for (auto& one : sockets_)
      one.reset();
    demand_equal(budget_.total_bytes(), 0, "the output of no sockets");
    cut_.clear();
    demand_equal(budget_.relieve(now_ + 1h), 0U, "no socket is left to be cut off");
  }

private:
  void renew(std::size_t i) {
    sockets_[i].reset();
    sockets_[i] =
        std::make_unique<output_budget::account>(budget_, [this, i] { cut_.push_back(i); });
    twins_[i] = {};
  }

  std::int64_t sum(bool with_cut) const {
    std::int64_t bytes = 0;
    for (const reader& one : twins_)
      if (with_cut || !one.cut) bytes += one.bytes;
    return bytes;
  }

  void set(std::size_t i, std::int64_t bytes, bool destroyed) {
    const bool was_full = sum(true) > max_;
    twins_[i].bytes = bytes;
    if (sum(true) > max_ && !was_full) ++expected_filled_;
    if (destroyed)
      sockets_[i].reset();
    else
      sockets_[i]->set(bytes);
  }

  void relieve() {
    cut_.clear();
    const std::size_t n = budget_.relieve(now_);
    names candidates;
    std::vector<std::int64_t> held;
    for (std::size_t i = 0; i < twins_.size(); ++i) {
      reader& one = twins_[i];
      held.push_back(one.bytes);
      if (one.bytes == 0 || one.taken != one.seen_taken) {
        one.seen_taken = one.taken;
        one.seen_at = now_;
      }
      if (one.cut || one.bytes == 0) continue;
      if (now_ - one.seen_at >= 1s || sum(false) > 2 * max_) candidates.push_back(i);
    }
    check_cut(cut_, held, candidates, sum(false), max_ / 2);
    demand_equal(n, cut_.size(), "how many were cut off");
    for (const std::size_t i : cut_)
      twins_[i].cut = true;
  }

  const std::int64_t max_;
  output_budget budget_;
  std::array<std::unique_ptr<output_budget::account>, 6> sockets_;
  std::array<reader, 6> twins_;
  names cut_;
  int filled_ = 0, expected_filled_ = 0;
  time now_{1h};
};

} // namespace

TEST_CASE("Messages are refused and given up as by one that adds all of them up anew") {
  CHECK(first_failure({.cases = 3000, .long_cases = 200'000}, [](const operations& sequence) {
          input_fixture fixture(sequence.empty() ? 0 : sequence.front().c);
          for (const operation& op : sequence)
            fixture.apply(op);
          fixture.end(sequence.size() % 2 == 0);
        }) == "");
}

TEST_CASE("Sockets are cut off as by one that adds all of their output up anew") {
  CHECK(first_failure({.cases = 3000, .long_cases = 200'000}, [](const operations& sequence) {
          output_fixture fixture(sequence.empty() ? 0 : sequence.front().c);
          for (const operation& op : sequence)
            fixture.apply(op);
          fixture.end();
        }) == "");
}
