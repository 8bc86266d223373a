// metrics: the figures of a run, defined as vLLM's `bench serve` defines them.
//
// TTFT: first content minus send. TPOT: (latency - TTFT) / (output tokens - 1) of a request with
// more than one. ITL: every gap between content chunks, pooled over requests. E2EL: last chunk
// minus send. Only completed requests count, always with their actual lengths. Of a run whose begin
// and end are left out, the requests sent within the window count, and rates are those of ends and
// of tokens that came within it. Pure functions.
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
  double window_from_s = 0, window_to_s = 0; ///< what --warmup-percent and --cooldown-percent leave
  std::size_t outside_window = 0; ///< requests sent before or after it: not counted below
  std::size_t completed = 0, failed = 0, cancelled = 0, interrupted = 0, unsent = 0;
  std::int64_t input_tokens = 0, output_tokens = 0;
  double request_throughput = 0;     ///< requests/s
  double request_goodput = 0;        ///< requests/s within every --goodput bound
  double output_throughput = 0;      ///< tokens/s
  double total_throughput = 0;       ///< tokens/s, input and output
  double peak_output_throughput = 0; ///< tokens in the best one-second bucket
  std::size_t peak_concurrent = 0;   ///< most requests touching one second (vLLM's definition)
  std::size_t peak_in_flight = 0;    ///< most requests at one moment

  summary ttft_ms, tpot_ms, itl_ms, e2el_ms;
  summary queue_ms; ///< send minus due time; all zero in a closed loop
  /// Counted from the due time: what a user would have seen had the client not held back. These
  /// are free of coordinated omission.
  summary ttft_with_queue_ms, e2el_with_queue_ms;
  double mean_ms_per_token = 0;        ///< mean of latency / (input + output)
  double mean_ms_per_output_token = 0; ///< mean of latency / output

  std::map<std::string, std::size_t> finish_reasons;
  std::map<std::string, std::size_t> error_kinds;
  std::size_t short_outputs = 0; ///< completed with fewer tokens than asked for
  std::size_t stopped_early = 0; ///< completed requests that a stop (end id) ended, not a limit
  std::size_t context_limited =
      0; ///< completed requests that ended by a length below the one asked for
  std::size_t counted_lengths = 0;  ///< completed without usage: output length counted from chunks
  std::size_t input_mismatches = 0; ///< the server's prompt length differs from the one asked for
};

serve_metrics compute_metrics(const run_outcome& run, const serve_options& options);

} // namespace twill::bench
