// timekeeper: the engine's clock and timers, so that a run can also go by made-up time.
//
// real_time() is the steady clock and asio's timers, for any number of threads. Another timekeeper
// belongs to one I/O thread, and to a transport that goes by the same time.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <memory>

#include "tools/twill-bench/engine/record.hpp"

namespace twill::bench {

/// One timer, of one coroutine at a time.
class alarm {
public:
  virtual ~alarm() = default;
  /// Returns at that time, or when cancel() is called.
  virtual boost::asio::awaitable<void> wait_until(clock::time_point when) = 0;
  virtual void cancel() = 0;
};

class timekeeper {
public:
  virtual ~timekeeper() = default;
  virtual clock::time_point now() const = 0;
  virtual std::unique_ptr<alarm> make_alarm(boost::asio::io_context& context) = 0;
  /// Runs the context until it is stopped.
  virtual void run(boost::asio::io_context& context) = 0;
};

timekeeper& real_time();

} // namespace twill::bench
