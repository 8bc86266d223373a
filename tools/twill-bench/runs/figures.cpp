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

const std::vector<figure_entry>& all_figures() {
  using f = run_figures;
  static const std::vector<figure_entry> all{
      {"asked", &f::asked, "requests", 0, nullptr, false},
      {"completed", &f::completed, "completed", 0, nullptr, false},
      {"failed", &f::failed, "failed", 0, nullptr, false},
      {"stopped_early", &f::stopped_early, "stopped_early", 0, nullptr, false},
      {"context_limited", &f::context_limited, "context_limited", 0, nullptr, false},
      {"lengths_counted_here", &f::counted_lengths, nullptr, 0, nullptr, false},
      {"input_mismatches", &f::input_mismatches, nullptr, 0, nullptr, false},
      {"concurrency", &f::concurrency, "concurrency", 0, nullptr, false},
      {"duration", &f::duration_s, "duration_s", 4, nullptr, false},
      {"mean_input_tokens", &f::input_tokens, "mean_input_tokens", 4, nullptr, false},
      {"mean_output_tokens", &f::output_tokens, "mean_output_tokens", 4, nullptr, false},
      {"request_throughput", &f::requests_per_s, "request_throughput", 4,
       "Request throughput (req/s)", true},
      {"output_throughput", &f::output_tokens_per_s, "output_throughput", 4,
       "Output token throughput (tok/s)", true},
      {"total_token_throughput", &f::total_tokens_per_s, nullptr, 0,
       "Total token throughput (tok/s)", true},
      {"mean_latency_per_token_ms", &f::ms_per_token, "mean_latency_per_token_ms", 4, nullptr,
       false},
      {"mean_latency_per_output_token_ms", &f::ms_per_output_token,
       "mean_latency_per_output_token_ms", 4, "Mean latency per output token (ms)", false},
      {"mean_ttft_ms", &f::mean_ttft_ms, "mean_ttft_ms", 4, nullptr, false},
      {"median_ttft_ms", &f::median_ttft_ms, "median_ttft_ms", 4, "Median TTFT (ms)", false},
      {"p99_ttft_ms", &f::p99_ttft_ms, "p99_ttft_ms", 4, "P99 TTFT (ms)", false},
      {"mean_tpot_ms", &f::mean_tpot_ms, "mean_tpot_ms", 4, nullptr, false},
      {"median_tpot_ms", &f::median_tpot_ms, "median_tpot_ms", 4, "Median TPOT (ms)", false},
      {"p99_tpot_ms", &f::p99_tpot_ms, "p99_tpot_ms", 4, nullptr, false},
      {"mean_itl_ms", &f::mean_itl_ms, "mean_itl_ms", 4, nullptr, false},
      {"median_itl_ms", &f::median_itl_ms, "median_itl_ms", 4, nullptr, false},
      {"p99_itl_ms", &f::p99_itl_ms, "p99_itl_ms", 4, "P99 ITL (ms)", false},
      {"mean_e2el_ms", &f::mean_e2el_ms, "mean_e2el_ms", 4, nullptr, false},
      {"median_e2el_ms", &f::median_e2el_ms, "median_e2el_ms", 4, "Median E2EL (ms)", false},
      {"p99_e2el_ms", &f::p99_e2el_ms, "p99_e2el_ms", 4, nullptr, false},
      {"client_cpu_share", &f::client_cpu_share, nullptr, 0, nullptr, false},
  };
  return all;
}

} // namespace twill::bench
