// In which order a fair_pool runs tasks, which of them it refuses, and which it drops.
#include "config/base/fair_pool.hpp"

#include <atomic>
#include <future>
#include <string>
#include <vector>

#include "tests/catch.hpp"

using twill::fair_pool;
using namespace std::chrono_literals;

namespace {

/// A pool of one thread that runs none of the added tasks until open() is called.
class held_pool {
public:
  explicit held_pool(std::int64_t waiting_bytes = 1 << 20, fair_pool::clock::duration wait = 1min)
      : pool({1, waiting_bytes, wait}) {
    std::promise<void> begun;
    pool.add({"gate",
              0,
              {},
              [&begun, this] {
                begun.set_value();
                gate_.get_future().wait();
              },
              {}});
    begun.get_future().wait();
  }
  ~held_pool() { open(); }

  void open() {
    if (!open_.exchange(true)) gate_.set_value();
  }
  bool add(const std::string& client, std::int64_t bytes) {
    return pool.add({client,
                     bytes,
                     {},
                     [this, client] { order.push_back(client); },
                     [this, client] { order.push_back(client + " expired"); }});
  }
  /// Lets the added tasks run, waits for them, and returns `order`.
  std::vector<std::string> run() {
    open();
    while (pool.waiting_bytes() > 0)
      std::this_thread::sleep_for(1ms);
    std::promise<void> done;
    pool.add({"last", 0, {}, [&done] { done.set_value(); }, {}});
    done.get_future().wait();
    return order;
  }

private:
  std::promise<void> gate_;
  std::atomic<bool> open_{false};

public:
  std::vector<std::string> order; ///< written by the pool's thread
  fair_pool pool;
};

} // namespace

TEST_CASE("clients take turns by bytes, and one client's tasks keep their order") {
  held_pool held;
  for (int i = 0; i < 4; ++i)
    CHECK(held.add("many", 50'000));
  CHECK(held.add("one", 50'000));
  CHECK(held.add("small", 1'000));
  CHECK(held.add("small", 1'000));
  CHECK(held.run() ==
        std::vector<std::string>{"many", "one", "small", "small", "many", "many", "many"});
}

TEST_CASE("a client that comes back again and again does not overtake the others") {
  held_pool held;
  std::atomic<int> left{20};
  std::function<void()> again = [&] {
    held.order.push_back("again");
    if (--left > 0) held.pool.add({"again", 10'000, {}, again, {}});
  };
  CHECK(held.add("queue", 10'000));
  CHECK(held.pool.add({"again", 10'000, {}, again, {}}));
  CHECK(held.add("queue", 10'000));
  CHECK(held.add("queue", 10'000));
  held.open();
  while (left > 0)
    std::this_thread::sleep_for(1ms);
  held.run();
  std::size_t last = 0;
  for (std::size_t i = 0; i < held.order.size(); ++i)
    if (held.order[i] == "queue") last = i;
  CHECK(last <= 6);
}

TEST_CASE("what waits is bounded, and one client leaves room for another") {
  held_pool held(1000);
  CHECK(held.add("greedy", 400));
  CHECK_FALSE(held.add("greedy", 200)); // its 600 bytes would exceed the 400 left
  CHECK(held.add("greedy", 100));
  CHECK_FALSE(held.add("other", 501));
  CHECK(held.add("other", 400));
  CHECK(held.pool.waiting_bytes() == 900);
  held.run();
  CHECK(held.pool.waiting_bytes() == 0);
  CHECK(held.add("greedy", 1000));
}

TEST_CASE("what nobody wants any more is dropped, and what waited too long expires") {
  held_pool held(1000, 20ms);
  std::atomic<int> ran{0};
  held.pool.add({"a", 10, [] { return true; }, [&] { ++ran; }, [&] { ++ran; }});
  held.add("b", 10);
  std::this_thread::sleep_for(30ms);
  CHECK(held.run() == std::vector<std::string>{"b expired"});
  CHECK(ran == 0);
}

TEST_CASE("a pool that ends runs nothing that waits") {
  std::atomic<int> ran{0};
  std::promise<void> gate;
  std::thread opener;
  {
    fair_pool pool({1, 1000, 1min});
    std::promise<void> begun;
    pool.add({"a",
              1,
              {},
              [&] {
                begun.set_value();
                gate.get_future().wait();
              },
              {}});
    begun.get_future().wait();
    pool.add({"a", 1, {}, [&] { ++ran; }, [&] { ++ran; }});
    opener = std::thread([&] {
      std::this_thread::sleep_for(20ms);
      gate.set_value();
    });
  }
  opener.join();
  CHECK(ran == 0);
}
