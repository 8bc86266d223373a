// io_threads, the I/O threads that streamed weights and KV blocks share: how many transfers each
// user runs at once, in which sequence they begin, and for what a user waits when it leaves.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "models/offload/streams/io_pool.hpp"
#include "models/offload/streams/io_threads.hpp"
#include "models/offload/streams/tier_resources.hpp"
#include "tests/catch.hpp"

namespace {

using namespace std::chrono_literals;
using twill::models::offload::io_share;
using twill::models::offload::io_threads;
using twill::models::offload::io_user;
using twill::models::offload::tier_budget;

template <class F>
bool eventually(F&& done) {
  for (int i = 0; i < 2000 && !done(); ++i)
    std::this_thread::sleep_for(1ms);
  return done();
}

/// Tasks that run until the test allows them to end.
struct held_tasks {
  struct inside {
    std::mutex mutex;
    std::condition_variable changed;
    std::set<std::size_t> slots;
    int begun = 0, ended = 0, may_end = 0;
    bool doubled = false; ///< two tasks had one slot at once
  };
  std::shared_ptr<inside> in = std::make_shared<inside>();

  io_threads::task one() const {
    return [in = in](std::size_t slot) {
      std::unique_lock lock(in->mutex);
      ++in->begun;
      if (!in->slots.insert(slot).second) in->doubled = true;
      in->changed.wait(lock, [&] { return in->ended < in->may_end; });
      ++in->ended;
      in->slots.erase(slot);
    };
  }
  void post(io_user& user, int n) const {
    for (int i = 0; i < n; ++i)
      user.post(one());
  }
  void allow(int n) const {
    const std::lock_guard lock(in->mutex);
    in->may_end += n;
    in->changed.notify_all();
  }
  int begun() const {
    const std::lock_guard lock(in->mutex);
    return in->begun;
  }
  int ended() const {
    const std::lock_guard lock(in->mutex);
    return in->ended;
  }
  /// Whether exactly `n` tasks begin.
  bool begins(int n) const {
    if (!eventually([&] { return begun() >= n; })) return false;
    std::this_thread::sleep_for(20ms);
    return begun() == n;
  }
};

} // namespace

TEST_CASE("a user of the I/O threads runs its share of tasks at once, and fewer beside a more "
          "urgent one",
          "[offload]") {
  io_threads threads;
  const auto blocks = threads.join({4, 2, 1});
  const auto weights = threads.join({3, 3, 0});
  const held_tasks of_blocks, of_weights;
  of_blocks.post(*blocks, 12);
  CHECK(of_blocks.begins(4));
  of_weights.post(*weights, 9); // blocks' tasks do not delay weights' tasks
  CHECK(of_weights.begins(3));
  of_blocks.allow(3);
  CHECK(of_blocks.begins(5)); // one of the four still runs; with one more the limit is 2
  of_weights.allow(9);
  CHECK(eventually([&] { return of_weights.ended() == 9; }));
  CHECK(of_blocks.begins(7)); // four run at once again
  of_blocks.allow(9);
  CHECK(eventually([&] { return of_blocks.ended() == 12; }));
  CHECK_FALSE(of_blocks.in->doubled);
  CHECK_FALSE(of_weights.in->doubled);
}

TEST_CASE("a user's tasks begin in the sequence in which they were posted, or before all others",
          "[offload]") {
  io_threads threads;
  const auto user = threads.join({1, 1, 0});
  std::mutex mutex;
  std::vector<int> ran;
  const auto note = [&](int number) {
    return [&, number](std::size_t) {
      const std::lock_guard lock(mutex);
      ran.push_back(number);
    };
  };
  const held_tasks held;
  held.post(*user, 1);
  CHECK(held.begins(1));
  user->post_all({note(1), note(2)}, false);
  user->post(note(3));
  user->post_all({note(4), note(5)}, true);
  user->post_first(note(6));
  user->post_all({}, true);
  held.allow(1);
  CHECK(eventually([&] {
    const std::lock_guard lock(mutex);
    return ran == std::vector{6, 4, 5, 1, 2, 3};
  }));
}

TEST_CASE("tasks that are posted together run side by side", "[offload]") {
  io_threads threads;
  const auto user = threads.join({3, 3, 0});
  std::this_thread::sleep_for(20ms); // the threads wait, so each must be woken for its task
  const held_tasks held;
  user->post_all({held.one(), held.one(), held.one(), held.one()}, false);
  CHECK(held.begins(3));
  held.allow(4);
  CHECK(eventually([&] { return held.ended() == 4; }));
}

TEST_CASE("a pool queues tasks before those that wait where that is asked for", "[offload]") {
  const auto pool = twill::models::offload::io_pool::start(1);
  REQUIRE(pool.ok());
  std::mutex mutex;
  std::vector<int> ran;
  const auto note = [&](int number) {
    return [&, number](twill::models::offload::io_worker&) {
      const std::lock_guard lock(mutex);
      ran.push_back(number);
    };
  };
  const held_tasks held;
  pool.value()->post([task = held.one()](auto& worker) { task(worker.number); });
  CHECK(held.begins(1));
  pool.value()->post_all({note(1), note(2)});
  pool.value()->post_all({note(3), note(4)}, true);
  held.allow(1);
  CHECK(eventually([&] {
    const std::lock_guard lock(mutex);
    return ran == std::vector{3, 4, 1, 2};
  }));
}

TEST_CASE("a user that leaves the I/O threads drops what waits and waits for what runs",
          "[offload]") {
  io_threads threads;
  auto user = threads.join({2, 2, 0});
  const held_tasks held;
  held.post(*user, 5);
  CHECK(held.begins(2));
  user->post_all({held.one(), held.one()}, true);
  CHECK_FALSE(user->close(10ms)); // two tasks still run
  held.allow(2);
  CHECK(eventually([&] { return held.ended() == 2; }));
  user->post(held.one());
  user->post_all({held.one()}, false);
  CHECK(held.begins(2));

  user = threads.join({2, 2, 0});
  const held_tasks more;
  more.post(*user, 2);
  CHECK(more.begins(2));
  std::thread opens([&] {
    std::this_thread::sleep_for(30ms);
    more.allow(2);
  });
  user.reset();
  CHECK(more.ended() == 2);
  opens.join();
}

TEST_CASE("threads that a disk holds are not counted for the next user, and not waited for at the "
          "end",
          "[offload]") {
  const held_tasks held, other;
  const auto began = std::chrono::steady_clock::now();
  {
    io_threads threads;
    const auto hung = threads.join({2, 2, 1});
    held.post(*hung, 2);
    CHECK(held.begins(2));
    CHECK_FALSE(hung->close(1ms));
    const auto next = threads.join({2, 2, 0});
    other.post(*next, 2);
    CHECK(other.begins(2));
    other.allow(2);
  }
  CHECK(other.ended() == 2);
  CHECK(std::chrono::steady_clock::now() - began < 10s);
  held.allow(2);
  CHECK(eventually([&] { return held.ended() == 2; }));
}

TEST_CASE("a tier's budget is promised once", "[offload]") {
  tier_budget budget(100);
  CHECK(budget.take(60));
  CHECK_FALSE(budget.take(41));
  CHECK(budget.free() == 40);
  CHECK(budget.take(40));
  budget.give_back(60);
  CHECK(budget.free() == 60);
  CHECK(budget.taken() == 40);
}
