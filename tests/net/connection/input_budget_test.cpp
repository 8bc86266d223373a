// input_budget, the bytes of all messages that are being received: which connections are refused or
// have their message dropped, and in which order.
#include "net/connection/input_budget.hpp"
#include "tests/catch.hpp"

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

using namespace twill;
using namespace twill::net;
using namespace std::chrono_literals;

namespace {

constexpr input_budget::time start{1h};

/// Sockets of a budget of 1000 bytes and 100 bytes per second.
struct fixture {
  input_budget budget{1000, 100};
  std::string given_up;
  std::map<char, std::unique_ptr<input_budget::account>> sockets;

  input_budget::account& at(char name) {
    auto& one = sockets[name];
    if (!one) {
      one = std::make_unique<input_budget::account>(budget);
      one->on_give_up([this, name] { given_up += name; });
    }
    return *one;
  }
};

} // namespace

TEST_CASE("Messages within their budget are taken, and give it back when they are whole") {
  fixture b;
  CHECK(b.at('a').set(400, start));
  CHECK(b.at('b').set(600, start));
  CHECK(b.budget.total_bytes() == 1000);
  b.at('a').clear();
  CHECK(b.at('c').set(400, start + 1ms));
  b.sockets.erase('b');
  CHECK(b.budget.total_bytes() == 400);
  CHECK(b.at('c').set(0, start + 2ms));
  CHECK(b.budget.total_bytes() == 0);
  CHECK(b.given_up.empty());
}

TEST_CASE("A message beyond the budget is refused while all others come at a fair pace") {
  fixture b;
  CHECK(b.at('a').set(500, start));
  CHECK(b.at('b').set(400, start));
  CHECK(b.at('a').set(560, start + 500ms));
  CHECK_FALSE(b.at('c').set(200, start + 600ms));
  CHECK(b.budget.total_bytes() == 960);
  CHECK(b.given_up.empty());
  CHECK(b.at('c').set(40, start + 700ms));
}

TEST_CASE("For room slow messages are given up, the largest first, until half is free") {
  fixture b;
  CHECK(b.at('a').set(200, start));
  CHECK(b.at('b').set(300, start));
  CHECK(b.at('c').set(400, start));
  CHECK(b.at('c').set(480, start + 800ms)); // c receives 100 bytes per second
  CHECK(b.at('a').set(201, start + 900ms)); // a receives one byte in 900 ms
  CHECK(b.at('d').set(100, start + 1100ms));
  CHECK(b.given_up == "ba"); // not c, which is larger, but fast enough
  CHECK(b.at('b').is_cut());
  CHECK(b.budget.total_bytes() == 1081); // a and b count until they are freed
  CHECK_FALSE(b.at('b').set(301, start + 1150ms));
  CHECK_FALSE(b.at('b').is_cut());
  CHECK(b.budget.total_bytes() == 781);
}

TEST_CASE("A message that was whole first is not given up") {
  fixture b;
  CHECK(b.at('a').set(900, start));
  CHECK(b.at('b').set(200, start + 2s));
  CHECK(b.given_up == "a");
  b.at('a').clear();
  CHECK_FALSE(b.at('a').is_cut());
  CHECK(b.at('a').set(10, start + 2s)); // the next message of the socket
}

TEST_CASE("However messages come, they hold no more than twice their budget") {
  std::mt19937 random(43);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  fixture b;
  std::map<char, std::int64_t> held; // the bytes that the sessions hold
  std::size_t n_refused = 0;
  auto now = start;
  for (int i = 0; i < 20'000; ++i) {
    const char name = static_cast<char>('a' + below(26));
    now += std::chrono::milliseconds(below(50));
    switch (below(8)) {
    case 0: // a message is complete, or is freed because it was given up
      b.at(name).clear();
      held[name] = 0;
      break;
    case 1:
      b.sockets.erase(name);
      held[name] = 0;
      break;
    default:
      if (const auto bytes = held[name] + 1 + below(300); b.at(name).set(bytes, now)) {
        held[name] = bytes;
      } else {
        held[name] = 0;
        ++n_refused;
      }
    }
    std::int64_t total = 0;
    for (const auto& one : held)
      total += one.second;
    REQUIRE(total == b.budget.total_bytes());
    REQUIRE(total <= 2000);
  }
  CHECK(n_refused > 100);
  CHECK(b.given_up.size() > 100);
}
