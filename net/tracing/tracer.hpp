// tracer: hands traces of requests to an OpenTelemetry collector, without ever holding a request
// up. A public header of net/, beside server.hpp.
//
// Thread safety: watch() and read() may be called from any thread, and what watch() puts into a
// request from engine threads, also after the tracer is gone. What ends is queued within a bound
// and sent in batches by one thread of the tracer's own. A batch that nobody takes is tried again
// some times, then given up. What finds the queue full, and what is given up, is counted.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "actors/port/engine_port.hpp"
#include "config/options.hpp"

namespace twill::net {

class tracer {
public:
  /// Posts the bytes of an OTLP request and returns the status of the answer, or 0 where none came
  /// within the time. Called on the tracer's thread; must not throw.
  using post = std::function<int(const std::string& body, std::chrono::milliseconds within)>;

  struct pace {
    std::chrono::milliseconds gather{1000}; ///< from the first span of a batch until it is sent
    std::chrono::milliseconds retry{1000};  ///< before the second try; then twice as long each time
    int tries = 5;                          ///< of one batch
    std::size_t max_queued = 4096;          ///< requests that have ended and were not sent
    std::size_t max_batch = 256;            ///< requests
  };

  tracer(const config::tracing_options& options, post send)
      : tracer(options, std::move(send), {}) {}
  tracer(const config::tracing_options& options, post send, pace how);
  /// Sends what is queued, if that can be done at once.
  ~tracer();
  tracer(const tracer&) = delete;
  tracer& operator=(const tracer&) = delete;

  /// Has the end of this request traced, if it is sampled. `traceparent` is the caller's header, or
  /// empty.
  void watch(actors::request& request, std::string_view traceparent);

  /// Spans since the start.
  struct counts {
    std::uint64_t sent = 0;
    std::uint64_t dropped = 0;
  };
  counts read() const;

private:
  struct shared;
  std::shared_ptr<shared> shared_;
  double sample_;
  std::jthread thread_;
};

} // namespace twill::net
