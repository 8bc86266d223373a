#include "tools/twill-bench/runs/figures.hpp"

#include <algorithm>

namespace twill::bench {

run_figures figures_of(const load_result& result, const serve_options& options) {
  const serve_metrics& m = result.metrics;
  run_figures out;
  out.asked = double(options.n_prompts);
  out.completed = double(m.completed);
  out.failed = double(m.failed);
  out.stopped_early = double(m.stopped_early);
  out.context_limited = double(m.context_limited);
  out.counted_lengths = double(m.counted_lengths);
  out.input_mismatches = double(m.input_mismatches);
  out.concurrency = double(m.peak_in_flight);
  out.duration_s = result.outcome.duration_s;
  const double completed = double(std::max<std::size_t>(1, m.completed));
  out.input_tokens = double(m.input_tokens) / completed;
  out.output_tokens = double(m.output_tokens) / completed;
  out.requests_per_s = m.request_throughput;
  out.output_tokens_per_s = m.output_throughput;
  out.total_tokens_per_s = m.total_throughput;
  out.ms_per_token = m.mean_ms_per_token;
  out.ms_per_output_token = m.mean_ms_per_output_token;
  const auto put = [](const summary& of, double& mean, double& median, double& p99) {
    mean = of.mean;
    median = of.median;
    p99 = of.percentiles.front();
  };
  put(m.ttft_ms, out.mean_ttft_ms, out.median_ttft_ms, out.p99_ttft_ms);
  put(m.tpot_ms, out.mean_tpot_ms, out.median_tpot_ms, out.p99_tpot_ms);
  put(m.itl_ms, out.mean_itl_ms, out.median_itl_ms, out.p99_itl_ms);
  put(m.e2el_ms, out.mean_e2el_ms, out.median_e2el_ms, out.p99_e2el_ms);
  out.client_cpu_share = result.outcome.client.cpu_share;
  const auto& records = result.outcome.records;
  const auto first = std::find_if(records.begin(), records.end(),
                                  [](const record& r) { return r.how == outcome::failed; });
  if (first != records.end()) out.first_error = first->error_kind + ": " + first->error;
  return out;
}

} // namespace twill::bench
