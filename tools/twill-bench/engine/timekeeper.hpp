// timekeeper: the clock and the timers of the engine, which tests can replace by simulated time.
//
// real_time() uses the steady clock and Asio's timers and may be used by any number of threads. Any
// other timekeeper is used by one I/O thread, with a transport that uses the same timekeeper.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <memory>

#include "tools/twill-bench/engine/record.hpp"

namespace twill::bench {

/// A timer, used by one coroutine at a time.
class alarm {
public:
  virtual ~alarm() = default;
  /// Completes at `when`, or when cancel() is called.
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
