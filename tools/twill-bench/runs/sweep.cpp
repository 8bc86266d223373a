#include "tools/twill-bench/runs/sweep.hpp"

namespace twill::bench {

const std::vector<sweep_metric>& sweep_metrics() {
  static const std::vector<sweep_metric> all{
      {"Throughput (requests/s)", "Throughput", "requests/s", "throughput-req", true, true,
       &run_figures::requests_per_s},
      {"Throughput (output token/s)", "Throughput", "output token/s", "throughput-token-out", true,
       true, &run_figures::output_tokens_per_s},
      {"Average latency per token (ms)", "Average latency per token", "ms", "pertoken", false,
       false, &run_figures::ms_per_token},
      {"Average latency per output token (ms)", "Average latency per output token", "ms",
       "per-out-token", false, false, &run_figures::ms_per_output_token},
  };
  return all;
}

std::optional<double> value_of(const sweep_cell& cell, const sweep_metric& metric) {
  const auto& phase = metric.from_throughput ? cell.throughput : cell.latency;
  if (!phase || phase->completed == 0) return std::nullopt;
  return (*phase).*metric.member;
}

} // namespace twill::bench
