// io_threads, the I/O threads that streamed weights and KV blocks share: how many transfers each
// user runs at once, how orders (lists of transfers that belong together) are numbered and served,
// and for what a user waits when it leaves.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

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

/// Tasks that a user runs and that stay until they may end.
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
  /// Whether `n` have begun, and no more follow.
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
  of_weights.post(*weights, 9); // whatever the others hold
  CHECK(of_weights.begins(3));
  of_blocks.allow(3);
  CHECK(of_blocks.begins(5)); // one is left of the four, and one has joined it
  of_weights.allow(9);
  CHECK(eventually([&] { return of_weights.ended() == 9; }));
  CHECK(of_blocks.begins(7)); // four at once again
  of_blocks.allow(9);
  CHECK(eventually([&] { return of_blocks.ended() == 12; }));
  CHECK_FALSE(of_blocks.in->doubled);
  CHECK_FALSE(of_weights.in->doubled);
}

TEST_CASE("an order's tasks begin once it is served", "[offload]") {
  std::vector<std::uint64_t> received;
  bool somebody = true;
  io_threads threads([&](std::uint64_t order) {
    received.push_back(order);
    return somebody;
  });
  const auto user = threads.join({1, 1, 0});
  std::mutex mutex;
  std::vector<int> ran;
  const auto note = [&](int what) {
    return [&, what](std::size_t) {
      const std::lock_guard lock(mutex);
      ran.push_back(what);
    };
  };
  const auto have_run = [&](const std::vector<int>& these) {
    return eventually([&] {
      const std::lock_guard lock(mutex);
      return ran == these;
    });
  };
  const auto first = user->order({note(1), note(2)}, false);
  user->order({note(3)}, false);
  CHECK(received == std::vector{first}); // which nobody has served yet
  threads.serve(12345);                  // which nobody was given
  std::this_thread::sleep_for(10ms);
  CHECK(have_run({}));
  threads.serve_all();
  CHECK(have_run({1, 2, 3}));
  const auto third = user->order({note(4)}, false);
  CHECK(received == std::vector{first, third});
  std::this_thread::sleep_for(10ms);
  CHECK(have_run({1, 2, 3}));
  threads.serve_all();
  CHECK(have_run({1, 2, 3, 4}));
  somebody = false;
  user->order({note(5)}, false);
  CHECK(have_run({1, 2, 3, 4, 5}));
  CHECK(received.size() == 3);

  const held_tasks held;
  held.post(*user, 1);
  CHECK(held.begins(1));
  user->post(note(6));
  user->order({note(7), note(8)}, true);
  held.allow(1);
  CHECK(have_run({1, 2, 3, 4, 5, 7, 8, 6}));
}

TEST_CASE("serving an order lets the next orders begin without a notification", "[offload]") {
  constexpr std::uint64_t ahead = io_threads::orders_ahead;
  std::vector<std::uint64_t> received;
  io_threads threads([&](std::uint64_t order) {
    received.push_back(order);
    return true;
  });
  const auto user = threads.join({2, 2, 0});
  std::atomic<std::uint64_t> n_run{0};
  const auto order = [&](std::uint64_t n) {
    std::uint64_t last = 0;
    while (n-- > 0)
      last = user->order({[&](std::size_t) { ++n_run; }}, false);
    return last;
  };
  const auto have_run = [&](std::uint64_t n) {
    if (!eventually([&] { return n_run == n; })) return false;
    std::this_thread::sleep_for(10ms);
    return n_run == n;
  };
  const auto waits = order(3);
  CHECK(received.size() == 1);
  threads.serve(waits);
  CHECK(have_run(3));
  order(ahead / 2);
  CHECK(have_run(3 + ahead / 2));
  CHECK(received.size() == 1);
  // Serving an order also serves up to `orders_ahead` later ones in advance. The notifier asks for
  // serve() when fewer than half of these are left. The next order leaves fewer than half, so the
  // notifier is called although no order waits yet.
  const auto asked = order(1);
  CHECK(received.size() == 2);
  CHECK(received.back() == asked);
  order(2 * ahead);
  CHECK(received.size() == 2);
  // The other orders wait until serve() is called for the reported order number.
  CHECK(have_run(3 + ahead));
  const std::uint64_t all = 3 + ahead / 2 + 1 + 2 * ahead;
  threads.serve(asked);
  CHECK(have_run(all));
  // This order number was served before: serving it again takes nothing back.
  threads.serve(waits);
  order(ahead / 2);
  CHECK(have_run(all + ahead / 2));
  CHECK(received.size() == 2);
}

TEST_CASE("orders that came while the notifier was running begin together", "[offload]") {
  io_user* other = nullptr;
  std::atomic<int> n_run{0};
  const auto count = [&](std::size_t) { ++n_run; };
  io_threads threads([&](std::uint64_t) {
    other->order({count}, false); // as another thread may, while the notifier is still running
    return false;
  });
  const auto user = threads.join({1, 1, 0});
  other = user.get();
  user->order({count}, false);
  CHECK(eventually([&] { return n_run == 2; }));
}

TEST_CASE("an order is served at once if its notifier throws", "[offload]") {
  io_threads threads([](std::uint64_t) -> bool { throw std::bad_alloc(); });
  const auto user = threads.join({1, 1, 0});
  std::atomic<bool> ran{false};
  user->order({[&](std::size_t) { ran = true; }}, false);
  CHECK(eventually([&] { return ran.load(); }));
}

TEST_CASE("a user that leaves the I/O threads drops what waits and waits for what runs",
          "[offload]") {
  io_threads threads([](std::uint64_t) { return true; });
  auto user = threads.join({2, 2, 0});
  const held_tasks held;
  held.post(*user, 5);
  CHECK(held.begins(2));
  const auto order = user->order({held.one()}, true);
  CHECK_FALSE(user->close(10ms)); // a disk holds them
  held.allow(2);
  CHECK(eventually([&] { return held.ended() == 2; }));
  threads.serve(order);
  user->post(held.one());
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
