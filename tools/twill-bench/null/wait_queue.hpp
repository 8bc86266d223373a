// wait_queue: coroutines that wait until wake_all() resumes all of them, in the order in which they
// began to wait.
//
// Only one thread may use an object. wake_all() resumes each coroutine itself instead of posting it
// to the executor.
#pragma once

#include <boost/asio/async_result.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <utility>
#include <vector>

namespace twill::bench {

class wait_queue {
public:
  /// An awaitable that completes with the next call of wake_all().
  auto wait() {
    return boost::asio::async_initiate<const boost::asio::use_awaitable_t<>, void()>(
        [this](handler woken) { waiting_.push_back(std::move(woken)); },
        boost::asio::use_awaitable);
  }

  bool empty() const { return waiting_.empty(); }

  /// Coroutines that begin to wait during this call stay until the next one.
  void wake_all() {
    woken_.swap(waiting_);
    for (handler& each : woken_)
      std::move(each)();
    woken_.clear();
  }

private:
  using handler = boost::asio::async_result<boost::asio::use_awaitable_t<>, void()>::handler_type;
  std::vector<handler> waiting_, woken_;
};

} // namespace twill::bench
