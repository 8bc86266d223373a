#include "tests/gpu/late_copies.hpp"

#include <cstring>
#include <deque>
#include <functional>
#include <mutex>

#include "gpu/detail/transfer_backend.hpp"

namespace twill::test {

namespace {

using gpu::result;

std::mutex mutex; // guards all streams and events
int late = 0;     ///< copies that ended because the device waited for them

struct stream {
  std::deque<std::function<void()>> waiting;
  long begun = 0, ended = 0;

  void end_copies(long n) {
    for (; ended < n; ++ended) {
      waiting.front()();
      waiting.pop_front();
    }
  }
  void begin(std::function<void()> work) {
    waiting.push_back(std::move(work));
    ++begun;
  }
};
struct event {
  stream* of = nullptr; ///< null for an event of the device, whose ops are done when they return
  long copies = 0;

  int pass() const {
    const long before = of == nullptr ? 0 : of->ended;
    if (of != nullptr) of->end_copies(copies);
    return of == nullptr ? 0 : static_cast<int>(of->ended - before);
  }
};

result<void*> make_stream() {
  return result<void*>(new stream);
}
void drop_stream(void* s) {
  delete static_cast<stream*>(s);
}
result<void*> make_event() {
  return result<void*>(new event);
}
void drop_event(void* e) {
  delete static_cast<event*>(e);
}
result<nothing> begin(void* s, void* to, const void* from, std::size_t n) {
  const std::lock_guard lock(mutex);
  static_cast<stream*>(s)->begin([=] { std::memcpy(to, from, n); });
  return nothing{};
}
result<nothing> copy(void* s, void* to, const void* from, std::size_t n) {
  const std::lock_guard lock(mutex);
  auto* on = static_cast<stream*>(s);
  on->end_copies(on->begun);
  std::memcpy(to, from, n);
  return nothing{};
}
result<nothing> record(const gpu::detail::space&, void* e) {
  const std::lock_guard lock(mutex);
  *static_cast<event*>(e) = {};
  return nothing{};
}
result<nothing> record_copies(void* s, void* e) {
  const std::lock_guard lock(mutex);
  auto* on = static_cast<stream*>(s);
  *static_cast<event*>(e) = {on, on->begun};
  return nothing{};
}
result<nothing> wait(void* e) {
  const std::lock_guard lock(mutex);
  static_cast<event*>(e)->pass();
  return nothing{};
}
result<nothing> device_follows(const gpu::detail::space&, void* e) {
  const std::lock_guard lock(mutex);
  late += static_cast<event*>(e)->pass();
  return nothing{};
}
result<nothing> copies_follow(void* s, void* e) {
  const std::lock_guard lock(mutex);
  const event at = *static_cast<event*>(e);
  static_cast<stream*>(s)->begin([at] { at.pass(); });
  return nothing{};
}

constexpr gpu::detail::transfer_backend table{.device_is_host = true,
                                              .pin = nullptr,
                                              .unpin = nullptr,
                                              .make_stream = make_stream,
                                              .drop_stream = drop_stream,
                                              .to_device = copy,
                                              .to_host = copy,
                                              .begin_to_device = begin,
                                              .make_event = make_event,
                                              .drop_event = drop_event,
                                              .record = record,
                                              .wait = wait,
                                              .record_copies = record_copies,
                                              .copies_follow = copies_follow,
                                              .device_follows = device_follows};

} // namespace

late_copies::late_copies() : usual_(&gpu::detail::transfers()) {
  late = 0;
  gpu::detail::use_transfers(table);
}
late_copies::~late_copies() {
  gpu::detail::use_transfers(*usual_);
}
int late_copies::ended_for_the_device() const {
  const std::lock_guard lock(mutex);
  return late;
}

} // namespace twill::test
