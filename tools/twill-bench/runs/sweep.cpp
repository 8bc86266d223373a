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

const sweep_cell* find_cell(const sweep& in, std::int32_t input_tokens,
                            std::int32_t output_tokens) {
  for (const sweep_cell& cell : in.cells)
    if (cell.input_tokens == input_tokens && cell.output_tokens == output_tokens) return &cell;
  return nullptr;
}

std::optional<double> value_of(const sweep_cell& cell, const sweep_metric& metric) {
  const auto& phase = metric.from_throughput ? cell.throughput : cell.latency;
  if (!phase || phase->completed == 0) return std::nullopt;
  return (*phase).*metric.member;
}

std::string absence_of(const sweep_cell& cell, const sweep_metric& metric) {
  const auto& phase = metric.from_throughput ? cell.throughput : cell.latency;
  return !cell.skipped.empty() ? "skipped" : phase ? "failed" : "not run";
}

} // namespace twill::bench
