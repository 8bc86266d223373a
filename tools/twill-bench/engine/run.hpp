// run: drives a workload against a server from one or a few I/O threads and gathers the records.
//
// An engine keeps its connections between calls of run(), so that warm-ups warm them too. run()
// blocks its caller; stop() may be called from any thread or signal thread and makes it return
// early, with the requests that are complete. Start-up failures throw std::runtime_error.
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
  /// Of a reply that refuses the key before any request has had a token: nothing more is sent.
  std::atomic<int> refused_status{0};
};

/// How the client itself did.
struct client_health {
  double cpu_share = 0;       ///< of the busiest I/O thread, 1 = a whole core
  double loop_lag_p99_ms = 0; ///< lateness of a 20 ms heartbeat on the I/O threads
  double send_lag_p99_ms = 0; ///< lateness of sends that waited for their time
};

struct run_outcome {
  std::vector<record> records; // (n_prompts)
  double duration_s = 0;       ///< first to last event of the run
  bool interrupted = false;
  std::string ended_early; ///< why, when a limit of the run ended it; empty: it went to its end
  client_health client;
};

/// What the engine stands on; what is not given is the steady clock and real sockets. A timekeeper
/// of one's own needs `io_threads` 1 and a transport that goes by it.
struct engine_parts {
  timekeeper* time = nullptr;
  transport_factory make_transport;
};

class engine {
public:
  /// Resolves the server and opens shared connections.
  engine(const serve_options& options, const protocol& dialect, const engine_parts& parts = {});
  ~engine();

  /// Request i is due at due_s[i], in rising order; at most `max_in_flight` run at once (0: no
  /// limit).
  run_outcome run(const std::vector<prompt>& prompts, const std::vector<double>& due_s,
                  std::size_t max_in_flight, progress_counts& counts);
  void stop();
  /// Nothing more is sent; run() returns when what is under way has ended. From any thread.
  void close_intake();

private:
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace twill::bench
