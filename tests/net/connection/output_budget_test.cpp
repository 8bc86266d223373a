// The budget of unread output: which connections are cut off, and in which order.
#include "net/connection/flow_gate.hpp"
#include "net/connection/output_budget.hpp"
#include "tests/catch.hpp"

#include <memory>
#include <string>

using namespace twill;
using namespace twill::net;
using namespace std::chrono_literals;

namespace {

constexpr output_budget::time start{1h};

/// Sockets of a budget of 1000 bytes; `cut` names those that were closed.
struct fixture {
  output_budget budget{1000};
  std::string cut;
  int filled = 0;
  std::vector<std::unique_ptr<output_budget::account>> sockets;

  fixture() {
    budget.on_full([this] { ++filled; });
    for (const char name : {'a', 'b', 'c'})
      sockets.push_back(
          std::make_unique<output_budget::account>(budget, [this, name] { cut += name; }));
  }
  void wait(int a, int b, int c) {
    sockets[0]->set(a);
    sockets[1]->set(b);
    sockets[2]->set(c);
  }
};

} // namespace

TEST_CASE("Output within its budget cuts off nobody") {
  fixture b;
  b.wait(300, 300, 400);
  CHECK(!b.budget.full());
  b.wait(0, 0, 1001);
  CHECK(b.budget.full());
  CHECK(b.filled == 1);
  b.sockets.pop_back();
  CHECK(b.budget.total_bytes() == 0);
}

TEST_CASE("Beyond the budget the largest sockets that read nothing go first") {
  fixture b;
  b.wait(500, 600, 700);
  CHECK(b.budget.relieve(start) == 0); // no socket has been watched for long enough
  b.sockets[2]->taken() += 10;         // c reads
  CHECK(b.budget.relieve(start + 900ms) == 0);
  CHECK(b.budget.relieve(start + 1s) == 2);
  CHECK(b.cut == "ba");
  CHECK(b.budget.relieve(start + 1100ms) == 0); // each is cut off once
  CHECK(b.filled == 1);
}

TEST_CASE("No more are cut off than must be") {
  fixture b;
  b.wait(100, 850, 100);
  b.budget.relieve(start);
  CHECK(b.budget.relieve(start + 1s) == 1);
  CHECK(b.cut == "b");
}

TEST_CASE("What a socket that was cut off still holds cuts off nobody else") {
  fixture b;
  b.wait(400, 410, 420);
  b.budget.relieve(start);
  CHECK(b.budget.relieve(start + 1s) == 2);
  CHECK(b.cut == "cb");
  CHECK(b.budget.relieve(start + 1100ms) == 0); // b and c have yet to close
  CHECK(b.cut == "cb");
}

TEST_CASE("Far beyond the budget nobody is waited for") {
  fixture b;
  b.wait(10, 2000, 20);
  CHECK(b.budget.relieve(start) == 1);
  CHECK(b.cut == "b");
}

TEST_CASE("Under pressure a flow gate shuts near the ground") {
  flow_gate gate(6400);
  CHECK(gate.update(101) == flow_gate::change::none);
  gate.press(true);
  CHECK(gate.update(101) == flow_gate::change::shut);
  CHECK(gate.update(51) == flow_gate::change::none);
  CHECK(gate.update(50) == flow_gate::change::opened);
}
