// staging_buffers: which buffer takes which content, and when a reader has to wait.
#include "models/offload/streams/staging_buffers.hpp"

#include <chrono>
#include <thread>
#include <vector>

#include "tests/catch.hpp"

using namespace twill::models;
using namespace twill::models::offload;

namespace {

/// Three buffers of 8 bytes.
struct three_buffers {
  std::vector<unsigned char> memory = std::vector<unsigned char>(24);
  staging_buffers buffers;
  three_buffers() { buffers.create(memory.data(), 3, 8); }

  /// An idle buffer with the content ready in it, as after copies that have ended.
  staging_buffer& hold(std::int64_t content) {
    staging_buffer* b = buffers.idle(true);
    REQUIRE(b != nullptr);
    buffers.assign(*b, content);
    buffers.begin_copies(*b, buffer_state::filling, 1);
    REQUIRE(buffers.end_copy(*b, twill::nothing{}));
    return *b;
  }
};

result<twill::nothing> broken() {
  return failure{errc::file_unreadable, "the disk is gone"};
}

} // namespace

TEST_CASE("contents go to free buffers first, then to those that nobody awaits", "[offload]") {
  three_buffers t;
  const auto held = t.buffers.lock();
  CHECK(t.buffers.all()[1]->memory == t.memory.data() + 8);
  staging_buffer& first = t.hold(1);
  staging_buffer& second = t.hold(2);
  staging_buffer& third = t.hold(3);
  CHECK(t.buffers.find(1) == &first);
  CHECK(t.buffers.find(4) == nullptr);
  first.awaited = third.awaited = true;
  CHECK(t.buffers.idle(false) == &second);
  second.awaited = true;
  CHECK(t.buffers.idle(false) == nullptr);
  CHECK(t.buffers.idle(true) != nullptr);
}

TEST_CASE("a buffer that is in use or being copied takes no other content", "[offload]") {
  three_buffers t;
  auto held = t.buffers.lock();
  t.hold(1);
  t.hold(2);
  auto used = t.buffers.acquire(held, 1);
  REQUIRE(used.ok());
  CHECK(used.value()->state == buffer_state::in_use);
  t.buffers.begin_copies(*t.buffers.find(2), buffer_state::storing, 1);
  t.hold(3);
  CHECK(t.buffers.idle(true) == t.buffers.find(3)); // the only one that is idle
  t.buffers.end_use(*used.value(), buffer_state::free);
  CHECK(t.buffers.find(1) == nullptr);
  CHECK(t.buffers.idle(false) == used.value());
}

TEST_CASE("a buffer is ready after the last of its copies, or as the stream says", "[offload]") {
  three_buffers t;
  auto held = t.buffers.lock();
  staging_buffer& b = *t.buffers.idle(false);
  t.buffers.assign(b, 7);
  t.buffers.begin_copies(b, buffer_state::filling, 2);
  CHECK_FALSE(t.buffers.end_copy(b, twill::nothing{}));
  CHECK(b.state == buffer_state::filling);
  CHECK(t.buffers.end_copy(b, twill::nothing{}));
  CHECK(b.state == buffer_state::ready);
  REQUIRE(t.buffers.acquire(held, 7).ok());
  t.buffers.begin_copies(b, buffer_state::storing, 1, buffer_state::free);
  CHECK(b.state == buffer_state::storing);
  CHECK(t.buffers.end_copy(b, twill::nothing{}));
  CHECK(b.state == buffer_state::free);
  t.buffers.assign(b, 8);
  t.buffers.begin_copies(b, buffer_state::filling, 0); // nothing is stored yet: nothing to copy
  CHECK(b.state == buffer_state::ready);
}

TEST_CASE("a reader waits for its content's copies, and for a buffer to become idle", "[offload]") {
  three_buffers t;
  std::vector<staging_buffer*> used;
  {
    auto held = t.buffers.lock();
    for (const std::int64_t content : {1, 2, 3}) {
      t.hold(content);
      used.push_back(t.buffers.acquire(held, content).value());
    }
  }
  std::thread worker([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    auto held = t.buffers.lock();
    t.buffers.end_use(*used[1], buffer_state::ready);
    while (used[1]->state != buffer_state::filling) { // until the reader assigns content 4
      held.unlock();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      held.lock();
    }
    t.buffers.end_copy(*used[1], twill::nothing{});
  });
  auto held = t.buffers.lock();
  int fills = 0;
  const auto acquired = t.buffers.acquire(held, 4, [&](staging_buffer& b) {
    ++fills;
    t.buffers.assign(b, 4);
    t.buffers.begin_copies(b, buffer_state::filling, 1);
  });
  REQUIRE(acquired.ok());
  CHECK(acquired.value() == used[1]);
  CHECK(acquired.value()->content == 4);
  CHECK(fills == 1);
  CHECK(t.buffers.waited_seconds() > 0);
  held.unlock();
  worker.join();
}

TEST_CASE("a copy that failed fails whoever waits, and every later reader", "[offload]") {
  three_buffers t;
  auto held = t.buffers.lock();
  t.hold(1);
  staging_buffer& b = *t.buffers.idle(false);
  t.buffers.assign(b, 2);
  t.buffers.begin_copies(b, buffer_state::filling, 2);
  std::thread worker([&] {
    const auto mine = t.buffers.lock();
    t.buffers.end_copy(b, broken());
  });
  const auto waited = t.buffers.acquire(held, 2);
  REQUIRE_FALSE(waited.ok());
  CHECK(waited.code() == errc::file_unreadable);
  CHECK(waited.detail() == "the disk is gone");
  CHECK_FALSE(t.buffers.acquire(held, 1).ok());
  held.unlock();
  worker.join();
}
