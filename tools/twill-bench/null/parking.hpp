// parking: coroutines that wait until they are woken, all at once and in the order they came.
//
// One thread. Waking runs them here and now, without the executor's queue.
#pragma once

#include <boost/asio/async_result.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <utility>
#include <vector>

namespace twill::bench {

class parking {
public:
  /// co_await it.
  auto wait() {
    return boost::asio::async_initiate<const boost::asio::use_awaitable_t<>, void()>(
        [this](handler woken) { waiting_.push_back(std::move(woken)); },
        boost::asio::use_awaitable);
  }

  bool empty() const { return waiting_.empty(); }

  /// Those that wait anew meanwhile stay.
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
