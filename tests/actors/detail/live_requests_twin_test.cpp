// live_requests, the table of an engine's live requests, gives the same answers as a plain list of
// requests. Once the table is empty, it behaves like a new one.
#include "actors/detail/live_requests.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "actors/detail/drain_rate.hpp"
#include "tests/actors/detail/plain_drain_rate.hpp"
#include "tests/actors/detail/plain_live_requests.hpp"
#include "tests/catch.hpp"
#include "tests/support/operations.hpp"

using namespace twill::actors;
using namespace twill::test;
using namespace std::chrono_literals;

namespace {

void demand_one_of(std::int32_t is, const std::vector<std::int32_t>& answers) {
  if (std::find(answers.begin(), answers.end(), is) == answers.end())
    demand_equal(is, answers.front(), "the seconds after which to retry");
}

class both {
public:
  explicit both(const operation& setup)
      : bounds_{2 + setup.a % 20, 1 + setup.b % 4, static_cast<std::int64_t>(20 + setup.c % 60)},
        table_(bounds_), twin_(bounds_) {}

  void apply(const operation& op) {
    now_ += 250ms * (op.c % 8 < 4 ? 0 : op.c % 8 - 3);
    if (op.c % 64 == 63) now_ += 20s;
    const request_id id =
        twin_.rows.empty() ? 1 + op.a % 8 : twin_.rows[op.a % twin_.rows.size()].id;
    switch (op.kind % 16) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
      insert(op);
      break;
    case 6:
    case 7:
    case 8:
      erase(id, op.b % 4 > 0);
      break;
    case 9:
    case 10:
      pause(id);
      break;
    case 11:
      table_.resume(id);
      twin_.resume(id);
      break;
    case 12:
      take_expired();
      break;
    case 13: {
      const bool left = table_.keep_watching();
      demand_equal(left, !twin_.deadlines.empty(), "whether deadlines are left");
      watching_ = left;
      break;
    }
    case 14:
      retry(op);
      break;
    default:
      rare(op);
    }
    compare();
  }

  /// Every request leaves the table, in one way or another.
  void end(std::uint32_t how) {
    while (!twin_.rows.empty())
      erase(twin_.rows[how % twin_.rows.size()].id, how % 2 == 0);
    compare();
    demand(table_.take_expired(now_ + 24h).empty(), "a deadline is left of a request that is over");
    live_requests::entry whole;
    whole.client = "fresh";
    whole.control = std::make_shared<request_control>();
    whole.bytes = bounds_.bytes;
    demand(table_.insert(++last_id_, whole, now_).refused == nullptr, "all bytes are free again");
    table_.erase(last_id_, false, now_);
    for (std::size_t i = 0; i < bounds_.live; ++i) {
      whole.client.clear();
      whole.bytes = 0;
      demand(table_.insert(++last_id_, whole, now_).refused == nullptr, "all places are free");
    }
    demand(table_.insert(++last_id_, whole, now_).refused != nullptr, "and no more");
    table_.clear();
    whole.bytes = bounds_.bytes / 4;
    for (std::size_t i = 0; i < bounds_.paused; ++i) {
      demand(table_.insert(++last_id_, whole, now_).refused == nullptr,
             "the cleared table is free");
      demand(!table_.pause(last_id_), "every place of paused requests is free");
      whole.bytes = 0;
    }
  }

private:
  void insert(const operation& op) {
    live_requests::entry added;
    added.control = std::make_shared<request_control>();
    added.client = op.a % 4 == 3 ? "" : std::string(1, static_cast<char>('a' + op.a % 4));
    added.most_of_client = added.client == "a" ? op.b % 5 : 0;
    added.bytes = static_cast<std::int64_t>(op.b / 5 % 16);
    if (op.c / 8 % 2 == 1) added.deadline = now_ + 250ms * (op.c / 16 % 6);
    if (op.c / 8 % 3 == 1) added.queue_deadline = now_ + 250ms * (op.c / 16 % 4);
    const auto id = ++last_id_;
    const auto answer = table_.insert(id, added, now_);
    const std::string expected = twin_.insert(id, added, now_);
    const std::string is = answer.refused == nullptr ? "" : answer.refused;
    demand(is.empty() == expected.empty() && is.find(expected) != std::string::npos,
           "refused because \"" + is + "\", expected \"" + expected + "\"");
    const bool starts = !watching_ && !twin_.deadlines.empty();
    demand_equal(answer.start_watching, starts, "whether deadlines must be watched");
    watching_ = watching_ || starts;
    controls_.push_back({id, added.control});
  }

  void erase(request_id id, bool was_queued) {
    const bool known = twin_.find(id) != nullptr;
    table_.erase(id, was_queued, now_);
    twin_.erase(id, was_queued, now_);
    if (known) expect_drained();
  }

  void pause(request_id id) {
    const bool surplus = table_.pause(id).has_value();
    demand_equal(surplus, twin_.pause(id) != 0, "whether one paused request must end");
  }

  void take_expired() {
    const auto passed = table_.take_expired(now_);
    const auto expected = twin_.take_expired(now_);
    demand_equal(passed.size(), expected.size(), "the number of deadlines that have passed");
    for (std::size_t i = 0; i < passed.size(); ++i) {
      demand_equal(passed[i].id, expected[i].id, "whose deadline has passed");
      demand_equal(passed[i].waited, expected[i].waited, "which deadline has passed");
    }
  }

  void retry(const operation& op) {
    const std::string client(1, static_cast<char>('a' + op.b % 3));
    demand_one_of(table_.retry_after_s(client, now_), twin_.retry_after_s(client, now_));
  }

  void rare(const operation& op) {
    switch (op.b % 4) {
    case 0:
      table_.clear();
      twin_.clear();
      break;
    case 1:
      table_.silence_all();
      for (const auto& [id, control] : controls_)
        if (twin_.find(id) != nullptr) silenced_.push_back(id);
      break;
    case 2:
      table_.drain([this] { ++drained_; });
      draining_ = waits_for_drain_ = true;
      break;
    default:
      table_.check_drained();
      expect_drained();
    }
  }

  void expect_drained() {
    if (!waits_for_drain_ || !twin_.rows.empty()) return;
    waits_for_drain_ = false;
    ++expected_drained_;
  }

  void compare() {
    demand_equal(table_.draining(), draining_, "draining");
    demand_equal(drained_, expected_drained_, "how often a drain was told");
    demand_equal(table_.all().size(), twin_.rows.size(), "the number of requests");
    for (const auto& [id, control] : controls_) {
      const auto is = table_.find(id);
      const auto* expected = twin_.find(id);
      demand_equal(is.has_value(), expected != nullptr, "whether a request is there");
      const bool silent = std::find(silenced_.begin(), silenced_.end(), id) != silenced_.end();
      demand_equal(control->silenced.load(), silent, "whether a request is silent");
      if (is) demand_equal(is->paused, expected->paused, "whether a request is paused");
    }
  }

  struct known {
    request_id id;
    std::shared_ptr<request_control> control;
  };

  live_requests::limits bounds_;
  live_requests table_;
  plain_live_requests twin_;
  steady_clock::time_point now_{1h};
  request_id last_id_ = 0;
  bool watching_ = false, draining_ = false, waits_for_drain_ = false;
  int drained_ = 0, expected_drained_ = 0;
  std::vector<known> controls_;
  std::vector<request_id> silenced_;
};

void play_table(const operations& sequence) {
  if (sequence.empty()) return;
  both table(sequence.front());
  for (std::size_t i = 1; i < sequence.size(); ++i)
    table.apply(sequence[i]);
  table.end(sequence.front().a);
}

void play_rate(const operations& sequence) {
  drain_rate rate;
  plain_drain_rate twin;
  drain_rate::time now{1h};
  for (const operation& op : sequence) {
    now += 250ms * (op.a % 8 < 4 ? 0 : op.a % 8 - 3);
    if (op.a % 128 == 127) now += 60s;
    switch (op.kind % 8) {
    case 0:
    case 1:
    case 2:
      rate.left(now);
      twin.left(now);
      break;
    case 3:
      rate.resume(now);
      twin.resume(now);
      break;
    case 4:
      if (op.b % 4 > 0) break;
      rate.forget_turns();
      twin.forget_turns();
      break;
    default: {
      const std::int32_t answer = rate.retry_after_s(now);
      demand(answer >= 1 && answer <= 60, "a time to retry is from 1 to 60 s");
      demand_one_of(answer, twin.retry_after_s(now));
    }
    }
    demand(std::abs(rate.per_second(now) - twin.per_second(now)) < 1e-9 * twin.per_second(now),
           "the rate at which requests leave");
  }
}

} // namespace

TEST_CASE("live_requests gives the same answers as a plain list of requests") {
  CHECK(first_failure({.cases = 3000, .long_cases = 100'000, .most_operations = 150}, play_table) ==
        "");
}

TEST_CASE("requests leave at the rate of all that ever left") {
  CHECK(first_failure({.cases = 2000, .long_cases = 60'000}, play_rate) == "");
}
