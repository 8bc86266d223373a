#include "tools/twill-bench/runs/compare.hpp"

#include <algorithm>
#include <optional>

#include "tools/twill-bench/report/side_by_side.hpp"
#include "tools/twill-bench/runs/doubts.hpp"

namespace twill::bench {
namespace {

using place = std::pair<std::int32_t, std::int32_t>; ///< input and output tokens

std::vector<place> places_of(const std::vector<named_sweep>& runs) {
  std::vector<place> out;
  for (const named_sweep& run : runs)
    for (const sweep_cell& cell : run.figures.cells)
      out.emplace_back(cell.input_tokens, cell.output_tokens);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

/// How the metric of one run stands beside that of the first run.
side_value side_value_of(const sweep& first, const sweep& run, place at,
                         const sweep_metric& metric) {
  side_value out;
  const sweep_cell* cell = find_cell(run, at.first, at.second);
  if (cell == nullptr) return out;
  if (const auto value = value_of(*cell, metric))
    out.rounds = {*value};
  else
    out.absent = absence_of(*cell, metric);
  const sweep_cell* base = find_cell(first, at.first, at.second);
  if (metric.member == &run_figures::requests_per_s && !out.rounds.empty() && base != nullptr &&
      value_of(*base, metric).value_or(0) > 0 &&
      lengths_differ(base->throughput->output_tokens, cell->throughput->output_tokens))
    out.no_ratio = "lengths differ";
  return out;
}

side_by_side metric_table(const std::vector<named_sweep>& runs,
                          const std::vector<reference>& references, const sweep_metric& metric) {
  side_by_side out;
  out.labels = {"Input", "Output"};
  out.labels_are_numbers = true;
  for (const named_sweep& run : runs)
    out.runs.push_back({run.name});
  for (const reference& each : references)
    out.runs.push_back({each.figures.setup.title, false});
  for (const place& at : places_of(runs)) {
    side_row row{{std::to_string(at.first), std::to_string(at.second)}, {}};
    for (const named_sweep& run : runs)
      row.values.push_back(side_value_of(runs[0].figures, run.figures, at, metric));
    for (const reference& each : references)
      row.values.push_back(side_value_of(each.figures, each.figures, at, metric));
    out.rows.push_back(std::move(row));
  }
  return out;
}

std::string about(const named_sweep& run) {
  const sweep_setup& s = run.figures.setup;
  std::string out = "- " + run.name + ": " + s.title;
  if (!s.server.empty()) out += ", " + s.server;
  out += ", " + (s.hardware.empty() ? "hardware unknown" : s.hardware) + ", backend " + s.backend +
         ", " + std::to_string(s.throughput_requests) + " requests for throughput";
  if (s.throughput_concurrency > 0)
    out += " (" + std::to_string(s.throughput_concurrency) + " in flight)";
  return out + ", " + s.date + (run.figures.interrupted ? ", interrupted" : "") + "\n";
}

} // namespace

std::string compare_sweeps(const std::vector<named_sweep>& runs,
                           const std::vector<reference>& references) {
  std::string tables;
  bool any_lengths_differ = false;
  for (const sweep_metric& metric : sweep_metrics()) {
    const side_by_side table = metric_table(runs, references, metric);
    for (const side_row& row : table.rows)
      for (const side_value& value : row.values)
        any_lengths_differ = any_lengths_differ || !value.no_ratio.empty();
    tables += std::string("## ") + metric.heading +
              (metric.more_is_better ? " (more is better)" : " (less is better)") + "\n\n" +
              side_by_side_markdown(table) + "\n";
  }
  std::string out = "# Sweeps side by side\n\n";
  for (const named_sweep& run : runs)
    out += about(run);
  const auto load = [](const sweep_setup& s) {
    return std::pair(s.throughput_requests, s.throughput_concurrency);
  };
  for (const named_sweep& run : runs)
    if (load(run.figures.setup) != load(runs[0].figures.setup))
      out += "- WARNING: " + run.name + " had another throughput load than " + runs[0].name + "\n";
  for (const reference& each : references) {
    out += "- " + each.figures.setup.title + ": as published, other hardware, no ratio";
    out += each.remark.empty() ? "\n" : "; " + each.remark + "\n";
  }
  if (any_lengths_differ)
    out += "- \"lengths differ\": the mean actual output lengths differ by over 2 %, so requests/s "
           "do not compare\n";
  return out + "\n" + tables;
}

std::vector<std::pair<std::string, chart>> compare_charts(const std::vector<named_sweep>& runs) {
  const std::vector<place> places = places_of(runs);
  std::vector<std::pair<std::string, chart>> out;
  for (const sweep_metric& metric : sweep_metrics()) {
    chart one;
    one.title = one.y_title = metric.heading;
    one.x_title = "input / output length (tokens)";
    for (const place& at : places)
      one.places.push_back(std::to_string(at.first) + "/" + std::to_string(at.second));
    for (const named_sweep& run : runs) {
      chart_series line;
      line.name = run.name;
      for (const place& at : places) {
        const sweep_cell* cell = find_cell(run.figures, at.first, at.second);
        line.values.push_back(cell == nullptr ? std::nullopt : value_of(*cell, metric));
      }
      one.series.push_back(std::move(line));
    }
    out.emplace_back(metric.file, std::move(one));
  }
  return out;
}

} // namespace twill::bench
