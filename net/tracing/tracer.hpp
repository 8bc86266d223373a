// tracer: sends traces of requests to an OpenTelemetry collector without ever delaying a request. A
// public header of net/, like server.hpp.
//
// Thread safety: any thread may call watch() and read(). The callback that watch() puts into a
// request runs on engine threads and may run after the tracer has been destroyed. Requests that
// have ended wait in a bounded queue, and the tracer's thread sends them in batches. A batch that
// the collector does not accept is tried again a few times and then dropped. Spans that are
// dropped, for this reason or because the queue was full, are counted.
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
  /// A function that posts the bytes of an OTLP request and returns the HTTP status of the reply,
  /// or 0 if no reply came within the time `within`. It is called on the tracer's thread and must
  /// not throw.
  using post = std::function<int(const std::string& body, std::chrono::milliseconds within)>;

  struct pace {
    /// How long a batch collects requests before it is sent.
    std::chrono::milliseconds gather{1000};
    /// Pause before the second try; doubled after each further try.
    std::chrono::milliseconds retry{1000};
    int tries = 5; ///< maximum number of tries for one batch
    /// Maximum number of ended requests that wait to be sent.
    std::size_t max_queued = 4096;
    std::size_t max_batch = 256; ///< maximum number of requests in a batch
  };

  tracer(const config::tracing_options& options, post send)
      : tracer(options, std::move(send), {}) {}
  tracer(const config::tracing_options& options, post send, pace how);
  /// Tries once to send each batch that is still queued, until a batch is not accepted.
  ~tracer();
  tracer(const tracer&) = delete;
  tracer& operator=(const tracer&) = delete;

  /// Makes the request report a trace when it ends, if the trace is sampled. `traceparent` is the
  /// header from the caller, or empty.
  void watch(actors::request& request, std::string_view traceparent);

  /// Numbers of spans since the start.
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
