// run: the class `engine`, which runs a workload against a server from one or a few I/O threads and
// collects the records.
//
// An engine keeps its connections between calls of run(), so that warm-up requests also warm up the
// connections. run() blocks its caller. stop() may be called from any thread, also from one that
// handles signals; run() then returns early, with the requests that are complete. Failures at the
// start throw std::runtime_error.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tools/twill-bench/engine/options.hpp"
#include "tools/twill-bench/engine/record.hpp"
#include "tools/twill-bench/engine/timekeeper.hpp"
#include "tools/twill-bench/engine/transport.hpp"
#include "tools/twill-bench/protocols/protocol.hpp"

namespace twill::bench {

/// Live counters for a progress line.
struct progress_counts {
  std::size_t total = 0;
  std::atomic<std::size_t> sent{0};
  std::atomic<std::size_t> ended{0};
  std::atomic<std::int64_t> output_tokens{0};
  std::atomic<std::int64_t> ttft_us{0}; ///< sum over `ttfts` requests
  std::atomic<std::int64_t> ttfts{0};
  /// 0, or the HTTP status of a reply that refused the API key before any output token had arrived.
  /// No further request is sent after such a reply.
  std::atomic<int> refused_status{0};
};

/// Whether the client itself was fast enough.
struct client_health {
  double cpu_share = 0;       ///< CPU use of the busiest I/O thread, 1 = a whole core
  double loop_lag_p99_ms = 0; ///< lateness of a timer that fires every 20 ms on the I/O threads
  double send_lag_p99_ms = 0; ///< lateness of requests that waited for their due time
};

struct run_outcome {
  std::vector<record> records; // (n_prompts)
  double duration_s = 0;       ///< from the first to the last event of the run
  bool interrupted = false;
  /// The reason, when a limit of the run ended it; empty when the run was not cut short.
  std::string ended_early;
  client_health client;
};

/// Parts of the engine that tests can replace. The defaults are the steady clock and real sockets.
/// A different timekeeper needs `io_threads` 1 and a transport that uses the same timekeeper.
struct engine_parts {
  timekeeper* time = nullptr;
  transport_factory make_transport;
};

class engine {
public:
  /// Resolves the server's name and opens the shared connections.
  engine(const serve_options& options, const protocol& dialect, const engine_parts& parts = {});
  ~engine();

  /// Request i is due at due_s[i]; due_s is in ascending order. At most `max_in_flight` requests
  /// run at once (0: no limit).
  run_outcome run(const std::vector<prompt>& prompts, const std::vector<double>& due_s,
                  std::size_t max_in_flight, progress_counts& counts);
  void stop();
  /// No further request is sent, and run() returns when the requests in flight have ended. May be
  /// called from any thread.
  void close_intake();

private:
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace twill::bench
