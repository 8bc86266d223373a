// held_requests: which requests may wait for a model that is not awake, and for how long.
#include "actors/pool/held_requests.hpp"

#include <chrono>
#include <memory>
#include <string>

#include "tests/catch.hpp"

using namespace twill::actors;
using namespace std::chrono_literals;

namespace {

const held_requests::time start = held_requests::time{} + 1h;

held_request_ptr of(request_id id, const std::string& client = "", std::int64_t bytes = 10) {
  auto held = std::make_shared<held_request>();
  held->id = id;
  held->asked.client = client;
  held->bytes = bytes;
  return held;
}

/// Requests that wait for one model.
struct queue {
  /// Lets the request wait, and returns true, if its queue is not full.
  bool takes(const held_request_ptr& held) {
    const auto full = requests.queue_full(*held, n_waiting, options);
    why = full ? full->message : "";
    if (full) {
      CHECK(full->code == errc::queue_full);
      CHECK(full->retry_after_s >= 1);
      return false;
    }
    requests.add(held);
    requests.begin_wait(*held, options, start);
    ++n_waiting;
    return true;
  }
  void leaves(request_id id) {
    const auto held = requests.find(id);
    requests.end_wait(*held);
    requests.remove(*held);
    --n_waiting;
  }

  held_requests requests;
  twill::config::options options;
  std::size_t n_waiting = 0;
  std::string why;
};

} // namespace

TEST_CASE("a queue for a model has room for so many, and unnamed clients may take all", "[pool]") {
  queue q;
  q.options.scheduler.max_queued = 20;
  for (request_id id = 1; id <= 20; ++id)
    CHECK(q.takes(of(id)));
  CHECK_FALSE(q.takes(of(21)));
  CHECK(q.why.find("scheduler.max_queued") != std::string::npos);
  q.leaves(2);
  CHECK(q.takes(of(21)));
}

TEST_CASE("a client with most of the places that wait leaves some to others", "[pool]") {
  queue q;
  q.options.scheduler.max_queued = 100;
  request_id id = 0;
  while (q.takes(of(++id, "many")))
    CHECK(id < 95);
  CHECK(id > 85);
  CHECK(q.why.find("this client") != std::string::npos);
  for (request_id other = 1001; other <= 1005; ++other)
    CHECK(q.takes(of(other, "one")));
  // Only requests that still wait count against the client.
  for (request_id gone = 1; gone < id; ++gone)
    q.leaves(gone);
  for (int i = 0; i < 80; ++i)
    CHECK(q.takes(of(++id, "many")));
}

TEST_CASE("the prompts that wait for all models are bounded together", "[pool]") {
  queue q;
  q.options.scheduler.max_prompts_bytes = 100;
  CHECK(q.takes(of(1, "a", 60)));
  CHECK_FALSE(q.takes(of(2, "b", 41)));
  CHECK(q.why.find("scheduler.max_prompts") != std::string::npos);
  CHECK(q.takes(of(3, "b", 40)));
  q.leaves(1);
  CHECK_FALSE(q.takes(of(4, "a", 61)));
  CHECK(q.takes(of(5, "a", 60)));
}

TEST_CASE("a tenant queues no more for a model than it may", "[pool]") {
  queue q;
  q.options.tenants = {{"small", {}, 1, 0, 2}, {"free", {}}};
  const auto of_tenant = [](request_id id, const std::string& tenant) {
    auto held = of(id, tenant);
    held->asked.tenant = tenant;
    return held;
  };
  CHECK(q.takes(of_tenant(1, "small")));
  CHECK(q.takes(of_tenant(2, "small")));
  CHECK_FALSE(q.takes(of_tenant(3, "small")));
  CHECK(q.why.find("tenants.max_queued") != std::string::npos);
  for (request_id id = 4; id < 8; ++id)
    CHECK(q.takes(of_tenant(id, "free")));
  q.leaves(1);
  CHECK(q.takes(of_tenant(3, "small")));
}

TEST_CASE("a request waits for a model until its deadline or queue_timeout, whichever is first",
          "[pool]") {
  queue q;
  q.options.limits.request_timeout = 5s;
  const auto patient = of(1), hurried = of(2), slow = of(3);
  hurried->asked.timeout = 2s;
  slow->asked.timeout = 9s; // longer than limits.request_timeout
  for (const auto& held : {patient, hurried, slow}) {
    REQUIRE(q.takes(held));
    CHECK(held->asked.arrived == start); // the wait is part of the request's time
  }
  CHECK(q.requests.late(start + 1999ms).empty());
  CHECK(q.requests.next_late(start) == start + 2s);
  CHECK(q.requests.late(start + 2s) == std::vector{hurried});
  CHECK(q.requests.next_late(start + 2s) == start + 5s);
  CHECK(q.requests.late(start + 5s).size() == 3);
  CHECK_FALSE(q.requests.next_late(start + 5s));
  CHECK(waited_too_long(*hurried, "m", start + 2s).code == errc::timed_out);

  q.options.scheduler.queue_timeout = 1s;
  const auto late = of(4);
  REQUIRE(q.takes(late));
  CHECK(q.requests.next_late(start) == start + 1s);
  CHECK(q.requests.late(start + 1s) == std::vector{late});
  const auto why = waited_too_long(*late, "m", start + 1s);
  CHECK(why.code == errc::queue_timed_out);
  CHECK(why.retry_after_s >= 1);
  // A request that is being sent to its engine cannot be late any more.
  q.requests.end_wait(*late);
  late->where = held_request::place::sending;
  CHECK(q.requests.late(start + 1s).empty());
  CHECK(q.requests.next_late(start) == start + 2s);

  q.options.scheduler.queue_timeout = q.options.limits.request_timeout = 0s;
  queue endless;
  endless.options = q.options;
  REQUIRE(endless.takes(of(1)));
  CHECK_FALSE(endless.requests.next_late(start));
}
