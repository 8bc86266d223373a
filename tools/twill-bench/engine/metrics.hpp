// metrics: the figures of a run, defined as vLLM's `bench serve` defines them.
//
// - TTFT: time from sending to the first content.
// - TPOT: (latency - TTFT) / (output tokens - 1), for requests with more than one output token.
// - ITL: the gaps between content chunks, pooled over all requests.
// - E2EL: time from sending to the last chunk.
//
// Only completed requests count, always with their actual lengths. When --warmup-percent or
// --cooldown-percent leave out the beginning or the end of a run, the rest is the window. Only
// requests sent within the window count, and rates count the requests that ended and the tokens
// that arrived within it. The functions are pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/twill-bench/engine/options.hpp"
#include "tools/twill-bench/engine/run.hpp"
#include "tools/twill-bench/engine/stats.hpp"

namespace twill::bench {

struct serve_metrics {
  /// The window: the part of the run that --warmup-percent and --cooldown-percent leave.
  double window_from_s = 0, window_to_s = 0;
  /// Requests sent before or after the window, which the figures below leave out.
  std::size_t outside_window = 0;
  std::size_t completed = 0, failed = 0, cancelled = 0, interrupted = 0, unsent = 0;
  std::int64_t input_tokens = 0, output_tokens = 0;
  double request_throughput = 0;     ///< requests/s
  double request_goodput = 0;        ///< requests/s that meet every --goodput bound
  double output_throughput = 0;      ///< tokens/s
  double total_throughput = 0;       ///< tokens/s, input and output
  double peak_output_throughput = 0; ///< tokens in the one-second bucket that has the most
  /// Most requests that ran during some part of one second (vLLM's definition).
  std::size_t peak_concurrent = 0;
  std::size_t peak_in_flight = 0; ///< most requests in flight at one moment

  summary ttft_ms, tpot_ms, itl_ms, e2el_ms;
  summary queue_ms; ///< send time minus due time; all zero in a closed loop
  /// Latencies counted from the due time, as a user would have seen them if the client had not held
  /// requests back. They are free of coordinated omission.
  summary ttft_with_queue_ms, e2el_with_queue_ms;
  double mean_ms_per_token = 0;        ///< mean of latency / (input + output)
  double mean_ms_per_output_token = 0; ///< mean of latency / output

  std::map<std::string, std::size_t> finish_reasons;
  std::map<std::string, std::size_t> error_kinds;
  std::size_t short_outputs = 0; ///< completed requests with fewer output tokens than asked for
  /// Completed requests that were ended by a stop (such as an end-of-sequence id) and not by a
  /// limit.
  std::size_t stopped_early = 0;
  std::size_t context_limited =
      0; ///< completed requests that ended by a length below the one asked for
  /// Completed requests without usage from the server: their output length was counted from chunks.
  std::size_t counted_lengths = 0;
  /// Requests for which the server's prompt length differs from the one asked for.
  std::size_t input_mismatches = 0;
};

serve_metrics compute_metrics(const run_outcome& run, const serve_options& options);

} // namespace twill::bench
