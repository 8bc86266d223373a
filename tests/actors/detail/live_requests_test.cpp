// Admission of requests by the engine: limits on the number of requests, on the requests and bytes
// of one client, and on the number of paused requests.
#include "actors/detail/live_requests.hpp"

#include <chrono>
#include <map>
#include <string>

#include "actors/detail/drain_rate.hpp"
#include "actors/detail/token_budget.hpp"
#include "tests/catch.hpp"

using namespace twill::actors;

namespace {

const auto start = steady_clock::now();

live_requests::entry of(const std::string& client, std::int64_t bytes = 10) {
  live_requests::entry e;
  e.control = std::make_shared<request_control>();
  e.client = client;
  e.bytes = bytes;
  return e;
}

} // namespace

TEST_CASE("paused requests do not count as admitted, and have a limit of their own") {
  live_requests table({20, 15, 1 << 20});
  request_id id = 0;
  for (int i = 0; i < 15; ++i) {
    REQUIRE(table.insert(++id, of("hoarder"), start).refused == nullptr);
    REQUIRE_FALSE(table.pause(id).has_value());
  }
  for (int i = 0; i < 15; ++i)
    CHECK(table.insert(++id, of("other"), start).refused == nullptr);
  // This pause of another client is one too many, so the hoarder's latest request must end.
  const auto surplus = table.pause(30);
  CHECK(surplus.has_value());
  CHECK(table.find(1)->paused);
  CHECK(table.find(14)->paused);
  CHECK_FALSE(table.find(15)->paused);
  table.erase(15, false, start);
  CHECK_FALSE(table.pause(30).has_value());
  // Resumed requests count again towards the limit on admitted requests.
  for (request_id paused = 1; paused <= 14; ++paused)
    table.resume(paused);
  CHECK(table.insert(++id, of("third"), start).refused != nullptr);
}

TEST_CASE("a client that holds much leaves places to others, and unnamed ones take all") {
  live_requests table({100, 10, 1 << 20});
  request_id id = 0;
  int got_in = 0;
  while (table.insert(++id, of("many"), start).refused == nullptr)
    ++got_in;
  CHECK(got_in >= 85);
  CHECK(got_in < 95);
  CHECK(table.insert(++id, of("one"), start).refused == nullptr);

  live_requests unnamed({100, 10, 1 << 20});
  for (id = 1; id <= 100; ++id)
    CHECK(unnamed.insert(id, of(""), start).refused == nullptr);
  CHECK(unnamed.insert(101, of(""), start).refused != nullptr);
}

TEST_CASE("the bytes of prompts are bounded, and paused requests may hold a quarter of them") {
  live_requests table({100, 100, 1000});
  CHECK(table.insert(1, of("a", 250), start).refused == nullptr);
  CHECK(table.insert(2, of("b", 600), start).refused == nullptr);
  CHECK_FALSE(table.pause(1).has_value());
  CHECK(table.pause(2).has_value()); // 850 bytes are paused, and 250 may be
  CHECK(table.insert(3, of("c", 151), start).refused != nullptr);
  table.erase(3, false, start);
  CHECK(table.insert(4, of("c", 150), start).refused == nullptr);
  table.erase(2, false, start);
  CHECK(table.insert(5, of("c", 600), start).refused == nullptr);
  table.erase(1, false, start);
  table.erase(1, false, start);
  table.erase(4, false, start);
  table.erase(5, false, start);
  CHECK(table.insert(6, of("a", 1000), start).refused == nullptr);
}

TEST_CASE("a client with a bound of its own is refused beyond it, and others are not") {
  live_requests table({100, 10, 1 << 20});
  const auto bounded = [] {
    auto e = of("small");
    e.most_of_client = 3;
    return e;
  };
  for (request_id id = 1; id <= 3; ++id)
    CHECK(table.insert(id, bounded(), start).refused == nullptr);
  const auto fourth = table.insert(4, bounded(), start);
  REQUIRE(fourth.refused != nullptr);
  CHECK(std::string(fourth.refused).find("tenants.max_queued") != std::string::npos);
  CHECK(table.insert(5, of("other"), start).refused == nullptr);
  table.erase(4, false, start);
  table.pause(1);
  CHECK(table.insert(6, bounded(), start).refused == nullptr);
}

TEST_CASE("deadlines of waiting are reported beside those of requests, each once") {
  live_requests table({100, 10, 1 << 20});
  const steady_clock::time_point now = steady_clock::now();
  auto both = of("a");
  both.deadline = now + std::chrono::seconds(5);
  both.queue_deadline = now + std::chrono::seconds(1);
  CHECK(table.insert(1, both, start).start_watching);
  auto gone = of("a");
  gone.deadline = gone.queue_deadline = now + std::chrono::seconds(1);
  table.insert(2, gone, start);
  table.erase(2, false, start);
  CHECK(table.take_expired(now).empty());
  auto passed = table.take_expired(now + std::chrono::seconds(1));
  REQUIRE(passed.size() == 1);
  CHECK(passed[0].id == 1);
  CHECK(passed[0].waited);
  passed = table.take_expired(now + std::chrono::seconds(6));
  REQUIRE(passed.size() == 1);
  CHECK_FALSE(passed[0].waited);
  CHECK_FALSE(table.keep_watching());
}

TEST_CASE("a table that was cleared is as good as a new one") {
  live_requests table({2, 1, 1000});
  auto limited = of("a", 200);
  limited.deadline = steady_clock::now();
  table.insert(1, limited, start);
  REQUIRE_FALSE(table.pause(1));
  table.insert(2, of("a", 700), start);
  table.clear();
  CHECK(table.all().empty());
  CHECK(table.take_expired(steady_clock::now()).empty());
  auto first = of("a", 250);
  first.most_of_client = 1;
  CHECK(table.insert(3, first, start).refused == nullptr);
  CHECK_FALSE(table.pause(3));
  CHECK(table.insert(4, of("a", 750), start).refused == nullptr);
  CHECK(table.insert(5, of("b", 1), start).refused != nullptr);
}

TEST_CASE("a drain is reported once, when the table is empty, and silence holds for all in it") {
  live_requests table({100, 10, 1 << 20});
  const auto first = of("a"), second = of("b");
  table.insert(1, first, start);
  table.insert(2, second, start);
  int drained = 0;
  table.check_drained();
  table.drain([&] { ++drained; });
  CHECK(table.draining());
  table.check_drained();
  table.erase(1, false, start);
  CHECK(drained == 0);
  table.silence_all();
  CHECK_FALSE(first.control->silenced); // its request had left the table
  CHECK(second.control->silenced);
  table.erase(2, false, start);
  table.check_drained();
  CHECK(drained == 1);
}

TEST_CASE("each refused request gets its own retry time, at the rate at which requests leave") {
  using std::chrono::milliseconds;
  drain_rate rate;
  auto now = steady_clock::now();
  CHECK(rate.retry_after_s(now) == 1); // no rate is known yet
  for (int i = 0; i < 200; ++i)
    rate.left(now += milliseconds(250)); // four requests leave each second
  CHECK(rate.per_second(now) == Approx(4).epsilon(0.1));
  // Of twenty refused requests at once, about four are asked to come in each second.
  std::map<std::int32_t, int> received;
  for (int i = 0; i < 20; ++i)
    received[rate.retry_after_s(now)] += 1;
  CHECK(received.size() >= 5);
  CHECK(received.size() <= 6);
  for (const auto& [second, n] : received) {
    CHECK(second >= 1);
    CHECK(n <= 5);
  }
  // Turns that are too far away are spread over half a minute.
  received.clear();
  for (int i = 0; i < 1000; ++i)
    received[rate.retry_after_s(now)] += 1;
  CHECK(received.rbegin()->first <= 60);
  for (const auto& [second, n] : received)
    CHECK(n <= 60);
  CHECK(rate.retry_after_s(now + std::chrono::minutes(30)) == 60); // the queue does not move
}

TEST_CASE("turns of clients that do not come back delay nobody once there is room") {
  for (const std::string client : {"any", "bounded"}) {
    live_requests table({100, 10, 1 << 20});
    auto now = steady_clock::now();
    const auto enter = [&](request_id id) {
      auto e = of(client);
      e.most_of_client = client == "bounded" ? 100 : 0;
      return table.insert(id, e, now).refused == nullptr;
    };
    for (request_id id = 1; id <= 200; ++id) { // twenty requests leave each second
      enter(id);
      table.erase(id, true, now += std::chrono::milliseconds(50));
    }
    for (int i = 0; i < 10'000; ++i)
      CHECK(table.retry_after_s(client, now) <= 60);
    // A minute later, the retry times that refused clients were given have passed and delay nobody
    // any more, although most of these clients did not come back.
    now += std::chrono::seconds(61);
    CHECK(table.retry_after_s(client, now) < 60);
    // Retry times are forgotten at once when a request is admitted while the table is less than
    // half full. The rate at which requests leave is not forgotten.
    for (int i = 0; i < 10'000; ++i)
      table.retry_after_s(client, now);
    CHECK(enter(1000));
    CHECK(table.retry_after_s(client, now) <= 2);
    // Retry times are not forgotten when a request is admitted to a table that is nearly full.
    for (request_id id = 1001; id < 1100; ++id)
      enter(id);
    for (int i = 0; i < 400; ++i)
      table.retry_after_s(client, now);
    table.erase(1000, false, start);
    enter(1100);
    CHECK(table.retry_after_s(client, now) > 2);
  }
}

TEST_CASE("only requests that leave the queue say how fast it drains") {
  live_requests table({1000, 10, 1 << 20});
  auto now = steady_clock::now();
  const auto pass = [&](request_id id, const std::string& client, bool queued) {
    auto e = of(client);
    e.most_of_client = client == "slow" ? 100 : 0;
    table.insert(id, e, start);
    table.erase(id, queued, now += std::chrono::milliseconds(20));
  };
  for (request_id id = 1; id <= 500; ++id)
    pass(id, "refused", false);
  CHECK(table.retry_after_s("any", now) == 1);
  CHECK(table.retry_after_s("any", now) == 2); // one turn a second, as no rate is known
  for (request_id id = 1001; id <= 2000; ++id)
    pass(id, id % 50 == 0 ? "slow" : "fast", true);
  CHECK(table.retry_after_s("any", now) == 1);
  CHECK(table.retry_after_s("any", now) == 1);  // fifty requests leave each second
  CHECK(table.retry_after_s("slow", now) <= 2); // one request of this client leaves each second
  CHECK(table.retry_after_s("slow", now) >= 2);
}

TEST_CASE("a budget of tokens fills with time, and debts are paid first") {
  using std::chrono::seconds;
  token_budget budget(600); // ten tokens a second
  auto now = steady_clock::now();
  CHECK_FALSE(budget.take(500, now));
  CHECK(budget.take(200, now) == 10);
  CHECK_FALSE(budget.take(100, now));
  CHECK(budget.check(1, now) == 1);
  CHECK_FALSE(budget.take(200, now + seconds(20)));
  budget.spend(300, now + seconds(20)); // more than was taken
  CHECK(budget.check(1, now + seconds(20)) == 31);
  CHECK(budget.check(1, now + seconds(49)) == 2);
  CHECK_FALSE(budget.check(10, now + seconds(51)));
  budget.settle(10'000, 0);
  CHECK_FALSE(budget.check(600, now + seconds(51)));
  // A request for more than a minute's tokens needs a full bucket.
  CHECK_FALSE(budget.take(5000, now + seconds(60)));
  CHECK(budget.check(1, now + seconds(60)) == 441);
}
