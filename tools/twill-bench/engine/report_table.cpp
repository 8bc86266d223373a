#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "tools/twill-bench/engine/report.hpp"

namespace twill::bench {
namespace {

constexpr std::size_t table_columns = 50;

std::string centred(const std::string& title, char fill) {
  const std::size_t room = table_columns - std::min(table_columns, title.size());
  return std::string(room / 2, fill) + title + std::string(room - room / 2, fill) + "\n";
}

std::string row(const std::string& label, const std::string& value) {
  std::array<char, 160> line{};
  std::snprintf(line.data(), line.size(), "%-40s %-10s\n", label.c_str(), value.c_str());
  return line.data();
}

std::string row(const std::string& label, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.2f", value);
  return row(label, std::string(text.data()));
}

std::string row(const std::string& label, std::int64_t value) {
  return row(label, std::to_string(value));
}

std::string percent_label(double percent) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "P%.10g", percent);
  return text.data();
}

std::string section(const std::string& title, const std::string& name, const summary& of,
                    const std::vector<double>& percents) {
  const auto line = [&name](std::string label, double value) {
    label += ' ';
    label += name;
    label += " (ms):";
    return row(label, value);
  };
  std::string out = centred(title, '-');
  out += line("Mean", of.mean);
  out += line("Median", of.median);
  for (std::size_t i = 0; i < percents.size(); ++i)
    out += line(percent_label(percents[i]), of.percentiles[i]);
  return out;
}

bool wanted(const serve_options& options, const std::string& metric) {
  const auto& all = options.percentile_metrics;
  return std::find(all.begin(), all.end(), metric) != all.end();
}

std::string latencies(const report_input& in) {
  const serve_options& options = in.options;
  const serve_metrics& m = in.metrics;
  const auto& percents = options.metric_percentiles;
  std::string out;
  if (options.stream) {
    if (wanted(options, "ttft")) out += section("Time to First Token", "TTFT", m.ttft_ms, percents);
    if (wanted(options, "tpot"))
      out += section("Time per Output Token (excl. 1st token)", "TPOT", m.tpot_ms, percents);
    if (wanted(options, "itl")) out += section("Inter-token Latency", "ITL", m.itl_ms, percents);
  }
  if (wanted(options, "e2el") || !options.stream)
    out += section("End-to-end Latency", "E2EL", m.e2el_ms, percents);
  if (is_open_loop(options)) {
    out += section("Client Queue Time (due to sent)", "Queue", m.queue_ms, percents);
    if (options.stream)
      out += section("Time to First Token from Due Time", "TTFT+Queue", m.ttft_with_queue_ms,
                     percents);
    out +=
        section("End-to-end Latency from Due Time", "E2EL+Queue", m.e2el_with_queue_ms, percents);
  }
  out += centred("Latency over Length", '-');
  out += row("Mean latency per token (ms):", m.mean_ms_per_token);
  out += row("Mean latency per output token (ms):", m.mean_ms_per_output_token);
  return out;
}

} // namespace

std::string report_table(const report_input& in) {
  const serve_options& options = in.options;
  const serve_metrics& m = in.metrics;
  std::string out = centred(" Serving Benchmark Result ", '=');
  out += row("Successful requests:", std::int64_t(m.completed));
  out += row("Failed requests:", std::int64_t(m.failed));
  if (m.cancelled > 0) out += row("Cancelled requests:", std::int64_t(m.cancelled));
  if (m.interrupted + m.unsent > 0)
    out += row("Unfinished requests:", std::int64_t(m.interrupted + m.unsent));
  if (options.max_concurrency > 0)
    out += row("Maximum request concurrency:", std::int64_t(options.max_concurrency));
  if (!std::isinf(options.request_rate_per_s))
    out += row("Request rate configured (RPS):", options.request_rate_per_s);
  out += row("Benchmark duration (s):", in.run.duration_s);
  out += row("Total input tokens:", m.input_tokens);
  out += row("Total generated tokens:", m.output_tokens);
  out += row("Request throughput (req/s):", m.request_throughput);
  if (!options.goodput_ms.empty()) out += row("Request goodput (req/s):", m.request_goodput);
  out += row("Output token throughput (tok/s):", m.output_throughput);
  if (options.stream) out += row("Peak output token throughput (tok/s):", m.peak_output_throughput);
  out += row("Peak concurrent requests:", double(m.peak_concurrent));
  out += row("Total token throughput (tok/s):", m.total_throughput);
  out += latencies(in);
  return out + std::string(table_columns, '=') + "\n";
}

} // namespace twill::bench
