// The door of the engine: how many requests, how many of one client, how many bytes, how many that
// are paused.
#include "actors/detail/live_requests.hpp"

#include "tests/catch.hpp"

using namespace twill::actors;

namespace {

live_requests::entry of(const std::string& client, std::int64_t bytes = 10) {
  live_requests::entry e;
  e.control = std::make_shared<request_control>();
  e.client = client;
  e.bytes = bytes;
  return e;
}

} // namespace

TEST_CASE("paused requests do not fill the door, and have a bound of their own") {
  live_requests table({20, 15, 1 << 20});
  request_id id = 0;
  for (int i = 0; i < 15; ++i) {
    REQUIRE(table.insert(++id, of("hoarder")).refused == nullptr);
    REQUIRE_FALSE(table.pause(id).has_value());
  }
  for (int i = 0; i < 15; ++i)
    CHECK(table.insert(++id, of("other")).refused == nullptr);
  // Another client's pause is one too many: the hoarder's latest must end.
  const auto surplus = table.pause(30);
  CHECK(surplus.has_value());
  table.erase(15);
  CHECK_FALSE(table.pause(30).has_value());
  // Whoever is resumed counts at the door again.
  for (request_id paused = 1; paused <= 14; ++paused)
    table.resume(paused);
  CHECK(table.insert(++id, of("third")).refused != nullptr);
}

TEST_CASE("a client that holds much leaves places to others, and unnamed ones take all") {
  live_requests table({100, 10, 1 << 20});
  request_id id = 0;
  int got_in = 0;
  while (table.insert(++id, of("many")).refused == nullptr)
    ++got_in;
  CHECK(got_in >= 85);
  CHECK(got_in < 95);
  CHECK(table.insert(++id, of("one")).refused == nullptr);

  live_requests unnamed({100, 10, 1 << 20});
  for (id = 1; id <= 100; ++id)
    CHECK(unnamed.insert(id, of("")).refused == nullptr);
  CHECK(unnamed.insert(101, of("")).refused != nullptr);
}

TEST_CASE("the bytes of prompts are bounded, and paused requests may hold a quarter of them") {
  live_requests table({100, 100, 1000});
  CHECK(table.insert(1, of("a", 240)).refused == nullptr);
  CHECK(table.insert(2, of("b", 600)).refused == nullptr);
  CHECK_FALSE(table.pause(1).has_value());
  CHECK(table.pause(2).has_value()); // 840 of 250
  CHECK(table.insert(3, of("c", 161)).refused != nullptr);
  table.erase(3);
  CHECK(table.insert(4, of("c", 160)).refused == nullptr);
  table.erase(2);
  CHECK(table.insert(5, of("c", 600)).refused == nullptr);
  table.erase(1);
  table.erase(1);
  table.erase(4);
  table.erase(5);
  CHECK(table.insert(6, of("a", 1000)).refused == nullptr);
}
