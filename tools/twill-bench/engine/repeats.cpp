#include "tools/twill-bench/engine/repeats.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <numeric>
#include <utility>

namespace twill::bench {
namespace {

using getter = std::function<double(const serve_metrics&)>;

const std::vector<std::pair<const char*, getter>>& figures() {
  static const std::vector<std::pair<const char*, getter>> all{
      {"request_throughput", [](const serve_metrics& m) { return m.request_throughput; }},
      {"request_goodput", [](const serve_metrics& m) { return m.request_goodput; }},
      {"output_throughput", [](const serve_metrics& m) { return m.output_throughput; }},
      {"total_token_throughput", [](const serve_metrics& m) { return m.total_throughput; }},
      {"mean_ttft_ms", [](const serve_metrics& m) { return m.ttft_ms.mean; }},
      {"median_ttft_ms", [](const serve_metrics& m) { return m.ttft_ms.median; }},
      {"mean_tpot_ms", [](const serve_metrics& m) { return m.tpot_ms.mean; }},
      {"median_tpot_ms", [](const serve_metrics& m) { return m.tpot_ms.median; }},
      {"mean_itl_ms", [](const serve_metrics& m) { return m.itl_ms.mean; }},
      {"mean_e2el_ms", [](const serve_metrics& m) { return m.e2el_ms.mean; }},
      {"median_e2el_ms", [](const serve_metrics& m) { return m.e2el_ms.median; }},
      {"mean_latency_per_token_ms", [](const serve_metrics& m) { return m.mean_ms_per_token; }},
      {"mean_latency_per_output_token_ms",
       [](const serve_metrics& m) { return m.mean_ms_per_output_token; }},
      {"failed", [](const serve_metrics& m) { return double(m.failed); }},
  };
  return all;
}

} // namespace

double student_t_975(std::size_t degrees_of_freedom) {
  constexpr std::array<double, 30> table{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                                         2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
                                         2.110,  2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
                                         2.060,  2.056, 2.052, 2.048, 2.045, 2.042};
  if (degrees_of_freedom == 0) return 0;
  return degrees_of_freedom <= table.size() ? table[degrees_of_freedom - 1] : 2.0;
}

std::vector<repeated_figure> over_repeats(const std::vector<serve_metrics>& runs) {
  std::vector<repeated_figure> out;
  const auto n = double(runs.size());
  for (const auto& [name, of] : figures()) {
    repeated_figure one;
    one.name = name;
    for (const serve_metrics& run : runs)
      one.values.push_back(of(run));
    one.mean = std::accumulate(one.values.begin(), one.values.end(), 0.0) / std::fmax(1, n);
    double squares = 0;
    for (const double value : one.values)
      squares += (value - one.mean) * (value - one.mean);
    if (runs.size() > 1)
      one.half_width = student_t_975(runs.size() - 1) * std::sqrt(squares / (n - 1) / n);
    out.push_back(std::move(one));
  }
  return out;
}

std::string repeats_table(const std::vector<repeated_figure>& of) {
  if (of.empty()) return {};
  std::string out = "Over " + std::to_string(of.front().values.size()) +
                    " repeats, mean and 95 % confidence interval:\n";
  for (const repeated_figure& one : of) {
    std::array<char, 160> line{};
    std::snprintf(line.data(), line.size(), "%-40s %.2f +- %.2f\n", one.name.c_str(), one.mean,
                  one.half_width);
    out += line.data();
  }
  return out;
}

} // namespace twill::bench
