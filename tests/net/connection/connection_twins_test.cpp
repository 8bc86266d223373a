// The classes that watch and count sockets give the same answers as plain lists of all events.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "net/connection/connection_guard.hpp"
#include "net/connection/least_rate.hpp"
#include "net/connection/open_sockets.hpp"
#include "net/connection/session_registry.hpp"
#include "net/connection/write_queue.hpp"
#include "tests/catch.hpp"
#include "tests/support/operations.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::test;
using namespace std::chrono_literals;

namespace {

using instant = connection_guard::time;

/// A reference for connection_guard, which detects clients that do not read. The reference computes
/// each answer anew from everything that was reported to it.
struct plain_guard {
  struct received {
    instant at;
    std::size_t bytes;
    bool pressed;
  };

  /// The time since which the gate is shut; none if the gate is open.
  std::optional<instant> shut_since() const {
    std::optional<instant> since;
    for (const received& one : bytes) {
      if (!since && one.bytes > (one.pressed ? most / 64 : most / 2))
        since = one.at;
      else if (since && one.bytes <= (one.pressed ? most / 128 : most / 8))
        since.reset();
    }
    return since;
  }
  /// When the gate last shut, also if it is open again.
  instant last_shut() const {
    instant last{};
    plain_guard before{most, patience, {}, {}, {}};
    for (const received& one : bytes) {
      before.bytes.push_back(one);
      if (const auto since = before.shut_since()) last = *since;
    }
    return last;
  }
  instant deadline() const {
    if (close_by) return *close_by;
    instant first = instant::max();
    if (write_begun) first = std::min(first, *write_begun + patience);
    if (const auto since = shut_since()) first = std::min(first, *since + patience);
    return first;
  }

  std::size_t most;
  std::chrono::milliseconds patience;
  std::vector<received> bytes;
  std::optional<instant> write_begun, close_by;
};

void play_guard(const operations& sequence) {
  const std::size_t most = 64 + (sequence.empty() ? 0 : sequence.front().c % 512);
  connection_guard guard({most, 3s});
  plain_guard twin{most, 3s, {}, {}, {}};
  connection_actions actions; // a connection collects actions until its session takes them
  bool pauses = false, resumes = false, pressed = false;
  instant now{1h};
  for (const operation& op : sequence) {
    now += 500ms * (op.c % 3);
    switch (op.kind % 8) {
    case 0:
      guard.on_write_begun(now);
      twin.write_begun = now;
      break;
    case 1:
      guard.on_write_ended();
      twin.write_begun.reset();
      break;
    case 2:
      pressed = op.a % 2 == 0;
      guard.press(pressed);
      break;
    case 3:
      if (op.a % 8 > 0) break;
      guard.close_by(now + 500ms * (op.b % 4));
      twin.close_by = now + 500ms * (op.b % 4);
      break;
    case 4:
      actions = {};
      pauses = resumes = false;
      break;
    default: {
      // A number of bytes close to one of the guard's thresholds, or any number.
      const std::size_t marks[] = {most / 128, most / 64, most / 8,
                                   most / 2,   most,      op.b % (2 * most)};
      const std::size_t bytes = marks[op.a % 6] + op.b % 2;
      const bool was_shut = twin.shut_since().has_value();
      twin.bytes.push_back({now, bytes, pressed});
      const bool is_shut = twin.shut_since().has_value();
      if (was_shut != is_shut) {
        pauses = is_shut;
        resumes = !is_shut;
      }
      guard.on_waiting_bytes(bytes, now, actions);
    }
    }
    demand_equal(actions.pause_requests, pauses, "whether requests pause");
    demand_equal(actions.resume_requests, resumes, "whether requests go on");
    demand(!actions.cancel_requests && !actions.close && !actions.half_close, "nothing else");
    demand_equal(guard.gate_open(), !twin.shut_since(), "whether the gate is open");
    demand_equal(guard.closing(), twin.close_by.has_value(), "closing");
    demand(guard.next_deadline() == twin.deadline(), "the next deadline");
    using verdict = connection_guard::verdict;
    for (const instant at : {now, now + 500ms, now + 3s, now + 1h}) {
      const auto expected = at < twin.deadline() ? verdict::fine
                            : twin.close_by      ? verdict::close
                                                 : verdict::slow_reader;
      demand(guard.check(at) == expected, "the verdict");
      for (const std::size_t bytes : {most, most + 1})
        demand_equal(guard.overrun(bytes, at), bytes > most && at - twin.last_shut() > 1s,
                     "whether output overruns");
    }
  }
}

void play_sockets(const operations& sequence) {
  const operation setup = sequence.empty() ? operation{} : sequence.front();
  const std::int64_t most = 1 + setup.a % 8, most_per_client = setup.b % 4;
  open_sockets sockets(most, most_per_client);
  struct held {
    std::unique_ptr<open_sockets::slot> slot;
    std::string client;
  };
  std::vector<held> all;
  const auto has_room = [&](const std::string& client) {
    return client.empty() || most_per_client == 0 ||
           std::count_if(all.begin(), all.end(),
                         [&](const held& one) { return one.client == client; }) < most_per_client;
  };
  for (const operation& op : sequence) {
    const std::string client =
        op.b % 4 == 0 ? "" : std::string(1, static_cast<char>('a' + op.b % 4));
    const std::size_t i = all.empty() ? 0 : op.a % all.size();
    if (op.kind % 8 < 4) {
      auto slot = sockets.admit(client);
      const bool expected = static_cast<std::int64_t>(all.size()) < most && has_room(client);
      demand_equal(slot.has_value(), expected, "whether a socket is admitted");
      if (slot)
        all.push_back({std::make_unique<open_sockets::slot>(std::move(*slot)),
                       most_per_client == 0 ? "" : client});
    } else if (op.kind % 8 < 6 && !all.empty()) {
      const bool expected = all[i].client == client || has_room(client);
      demand_equal(all[i].slot->count_for(client), expected, "whether a socket is counted anew");
      if (expected && most_per_client > 0) all[i].client = client;
    } else if (!all.empty()) {
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
    }
    demand_equal(sockets.count(), static_cast<std::int64_t>(all.size()), "the number of sockets");
    for (const held& one : all)
      demand(one.slot->client() == one.client, "whom a socket is counted for");
  }
  all.clear();
  demand_equal(sockets.count(), 0, "the number of no sockets");
  for (const std::string client : {"b", "c", "d"}) {
    std::vector<open_sockets::slot> again;
    const auto room = most_per_client == 0 ? most : std::min(most, most_per_client);
    for (std::int64_t n = 0; n < room; ++n) {
      auto slot = sockets.admit(client);
      demand(slot.has_value(), "every place is free again");
      again.push_back(std::move(*slot));
    }
    demand(!sockets.admit(client), "and no more than there were");
  }
}

struct plain_session final : socket_session {
  plain_session(socket_use u, bool busy) : use(u) { set_busy(busy); }
  void begin_drain() override {}
  void close_now() override {}
  const socket_use use;
};

/// The registry's account of open sockets (config/base/ledger.hpp) must count each session that is
/// alive, under the name of its protocol. It must say that everything is at rest once no session is
/// busy.
void compare_ledger(const session_registry& registry,
                    const std::vector<const plain_session*>& alive) {
  twill::ledger all;
  registry.account(all);
  std::map<std::string, std::int64_t> expected;
  bool busy = false;
  for (const auto* one : alive) {
    ++expected[one->use == socket_use::arriving ? "arriving sockets"
               : one->use == socket_use::http   ? "HTTP sockets"
                                                : "WebSockets"];
    busy = busy || one->is_busy();
  }
  all.taken("open sockets", static_cast<std::int64_t>(alive.size()));
  demand(all.accounts().at("open sockets").holders == expected, "who holds sockets");
  demand(all.faults().empty(), "sockets add up");
  demand_equal(all.is_at_rest(), !busy, "whether sockets rest");
}

void play_registry(const operations& sequence) {
  session_registry registry;
  std::map<std::uint64_t, std::shared_ptr<plain_session>> twin; // null if gone, but not removed
  for (const operation& op : sequence) {
    const auto some = twin.empty() ? twin.end() : std::next(twin.begin(), op.a % twin.size());
    if (op.kind % 4 < 2) {
      const auto use = static_cast<socket_use>(op.b % 3);
      const auto one = std::make_shared<plain_session>(use, op.c % 4 == 0);
      demand(twin.emplace(registry.add(one, use), one).second, "an id is given twice");
    } else if (some != twin.end() && op.kind % 4 == 2) {
      some->second = nullptr;
    } else if (some != twin.end()) {
      registry.remove(some->first);
      registry.remove(some->first);
      twin.erase(some);
    }
    std::vector<const socket_session*> is, expected;
    std::vector<const plain_session*> alive;
    for (const auto& one : registry.all())
      is.push_back(one.get());
    for (const auto& [id, one] : twin)
      if (one) alive.push_back(one.get());
    expected.assign(alive.begin(), alive.end());
    compare_ledger(registry, alive);
    std::sort(is.begin(), is.end());
    std::sort(expected.begin(), expected.end());
    demand(is == expected, "the sessions that are alive");
    demand_equal(registry.size(), twin.size(), "the number of sessions");
  }
}

void play_writes(const operations& sequence) {
  write_queue queue;
  std::string all; // all bytes that were ever pushed
  std::size_t written = 0, begun = 0;
  bool writing = false;
  for (const operation& op : sequence) {
    if (op.kind % 4 < 2) {
      std::string text(op.a % 5, static_cast<char>('a' + op.b % 26));
      all += text;
      op.kind % 4 == 0 ? queue.push(std::string_view(text)) : queue.push(std::move(text));
    } else if (writing) {
      queue.end_write();
      written = begun;
      writing = false;
    } else {
      const std::string& bytes = queue.begin_write();
      demand(bytes == all.substr(written), "a write has all that waits");
      begun = all.size();
      writing = true;
    }
    demand_equal(queue.writing(), writing, "whether it writes");
    demand_equal(queue.bytes(), all.size() - written, "the bytes that the client has not taken");
    demand_equal(queue.has_waiting(), all.size() > (writing ? begun : written),
                 "whether some wait");
    demand_equal(queue.empty(), all.size() == written && !writing, "whether there is nothing");
  }
}

} // namespace

TEST_CASE("A connection_guard decides as a reference that looks through all reports") {
  CHECK(first_failure({.cases = 1000, .long_cases = 50'000}, play_guard) == "");
}

TEST_CASE("Sockets are admitted as by a plain list of them") {
  CHECK(first_failure({.cases = 2000, .long_cases = 100'000}, play_sockets) == "");
}

TEST_CASE("A registry of sessions has those that are alive") {
  CHECK(first_failure({.cases = 300, .long_cases = 20'000}, play_registry) == "");
}

TEST_CASE("A session may go while a ledger looks at it") {
  session_registry registry;
  struct leaving_session final : socket_session {
    explicit leaving_session(session_registry& r) : registry(r) {}
    ~leaving_session() override { registry.remove(id); }
    void begin_drain() override {}
    void close_now() override {}
    session_registry& registry;
    std::uint64_t id = 0;
  };
  std::atomic<bool> done = false;
  std::thread comes_and_goes([&] {
    while (!done) {
      const auto session = std::make_shared<leaving_session>(registry);
      session->id = registry.add(session, socket_use::http);
    }
  });
  for (int i = 0; i < 20'000; ++i) {
    twill::ledger all;
    registry.account(all); // may drop the last reference to a session, which removes it
  }
  done = true;
  comes_and_goes.join();
  CHECK(registry.size() == 0);
}

TEST_CASE("A socket's output is written once, in order and whole") {
  CHECK(first_failure({.cases = 1000, .long_cases = 50'000}, play_writes) == "");
}

TEST_CASE("A message is due after the first time and the time of its bytes at the least rate") {
  CHECK(first_failure({.cases = 300, .long_cases = 20'000}, [](const operations& sequence) {
          for (const operation& op : sequence) {
            const std::int64_t rate = 1 + op.a % 5000, bytes = op.b;
            const std::chrono::milliseconds first(op.c % 10'000);
            const instant since{1h + std::chrono::milliseconds(op.kind)};
            const auto due = least_rate{first, rate}.due(since, bytes);
            const auto exact =
                since + first + std::chrono::nanoseconds(bytes * 1'000'000'000 / rate);
            demand(std::chrono::abs(due - exact) <= 1us, "the time at which a message is due");
          }
        }) == "");
}
