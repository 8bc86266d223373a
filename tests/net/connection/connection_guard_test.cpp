// The parts that HTTP and WebSocket connections share: write_queue, flow_gate (which pauses the
// producers of output) and connection_guard (which detects clients that do not read).
#include "net/connection/connection_guard.hpp"
#include "net/connection/write_queue.hpp"
#include "tests/catch.hpp"

using namespace twill::net;
using namespace std::chrono_literals;

namespace {

using verdict = connection_guard::verdict;

constexpr connection_guard::time start{1h};

} // namespace

TEST_CASE("Everything pushed during a write goes out with the next one") {
  write_queue q;
  q.push(std::string_view("a"));
  CHECK(q.begin_write() == "a");
  q.push(std::string_view("b"));
  q.push(std::string("c"));
  CHECK(q.bytes() == 3);
  CHECK(q.writing());
  q.end_write();
  CHECK(q.begin_write() == "bc");
  q.end_write();
  CHECK(q.empty());
}

TEST_CASE("The flow gate shuts high and opens low") {
  flow_gate gate(800);
  CHECK(gate.update(400) == flow_gate::change::none);
  CHECK(gate.update(401) == flow_gate::change::shut);
  CHECK(gate.update(500) == flow_gate::change::none);
  CHECK(gate.update(101) == flow_gate::change::none);
  CHECK(gate.update(100) == flow_gate::change::opened);
  CHECK(!gate.over_limit(800));
  CHECK(gate.over_limit(801));
}

TEST_CASE("The guard pauses producers at high water and resumes them at low water") {
  connection_guard guard({800, 30s});
  connection_actions actions;
  guard.on_waiting_bytes(401, start, actions);
  CHECK(actions.pause_requests);
  CHECK(!guard.gate_open());
  guard.on_waiting_bytes(100, start, actions);
  CHECK(!actions.pause_requests); // both actions at once would leave the requests paused
  CHECK(actions.resume_requests);
  CHECK(guard.gate_open());
}

TEST_CASE("The guard notices a stalled write and a gate that stays shut") {
  connection_guard guard({800, 30s});
  CHECK(guard.next_deadline() == connection_guard::time::max());
  guard.on_write_begun(start);
  CHECK(guard.next_deadline() == start + 30s);
  CHECK(guard.check(start + 29s) == verdict::fine);
  CHECK(guard.check(start + 30s) == verdict::slow_reader);
  guard.on_write_ended();
  CHECK(guard.check(start + 60s) == verdict::fine);
  connection_actions actions;
  guard.on_waiting_bytes(500, start + 60s, actions);
  CHECK(guard.next_deadline() == start + 90s);
  CHECK(guard.check(start + 90s) == verdict::slow_reader);
}

TEST_CASE("More output than the limit is an overrun only once producers had time to rest") {
  connection_guard guard({800, 30s});
  connection_actions actions;
  guard.on_waiting_bytes(900, start, actions);
  CHECK(!guard.overrun(900, start + 1s));
  CHECK(guard.overrun(900, start + 1001ms));
  CHECK(!guard.overrun(800, start + 2s));
}

TEST_CASE("Once a connection closes, only its last deadline counts") {
  connection_guard guard({800, 30s});
  guard.on_write_begun(start);
  guard.close_by(start + 1s);
  CHECK(guard.closing());
  CHECK(guard.next_deadline() == start + 1s);
  CHECK(guard.check(start + 999ms) == verdict::fine);
  CHECK(guard.check(start + 1s) == verdict::close);
}
