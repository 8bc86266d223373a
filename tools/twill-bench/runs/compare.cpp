#include "tools/twill-bench/runs/compare.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "tools/twill-bench/engine/text.hpp"
#include "tools/twill-bench/report/markdown.hpp"

namespace twill::bench {
namespace {

using place = std::pair<std::int32_t, std::int32_t>; ///< input and output tokens
constexpr double same_length = 0.02;

std::vector<place> places_of(const std::vector<named_sweep>& runs) {
  std::vector<place> out;
  for (const named_sweep& run : runs)
    for (const sweep_cell& cell : run.figures.cells)
      out.emplace_back(cell.input_tokens, cell.output_tokens);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

const sweep_cell* find(const sweep& in, place at) {
  for (const sweep_cell& cell : in.cells)
    if (cell.input_tokens == at.first && cell.output_tokens == at.second) return &cell;
  return nullptr;
}

std::optional<double> value_at(const sweep& in, place at, const sweep_metric& metric) {
  const sweep_cell* cell = find(in, at);
  return cell == nullptr ? std::nullopt : value_of(*cell, metric);
}

/// Returns false when the output lengths of both runs are known and differ.
bool alike(const sweep_cell& one, const sweep_cell& other) {
  const double a = one.throughput->output_tokens, b = other.throughput->output_tokens;
  return std::fabs(a - b) <= same_length * std::max(a, b);
}

std::string ratio_text(const sweep& base, const sweep& run, place at, const sweep_metric& metric,
                       bool& lengths_differ) {
  const auto first = value_at(base, at, metric), here = value_at(run, at, metric);
  if (!first || !here || *first == 0) return "";
  const bool by_request = metric.member == &run_figures::requests_per_s;
  if (by_request && !alike(*find(base, at), *find(run, at))) {
    lengths_differ = true;
    return "lengths differ";
  }
  return fixed(*here / *first, 2);
}

std::string value_text(const sweep& in, place at, const sweep_metric& metric) {
  const auto value = value_at(in, at, metric);
  if (value) return fixed(*value, 2);
  const sweep_cell* cell = find(in, at);
  return cell == nullptr ? "" : !cell->skipped.empty() ? "skipped" : "none";
}

std::string metric_table(const std::vector<named_sweep>& runs,
                         const std::vector<reference>& references, const sweep_metric& metric,
                         bool& lengths_differ) {
  std::vector<std::string> names{"Input", "Output"};
  for (const named_sweep& run : runs) {
    names.push_back(run.name);
    if (&run != &runs[0]) names.push_back("/ " + runs[0].name);
  }
  for (const reference& each : references)
    names.push_back(each.figures.setup.title);
  std::string out = std::string("## ") + metric.heading +
                    (metric.more_is_better ? " (more is better)" : " (less is better)") + "\n\n" +
                    markdown_heading(names);
  for (const place& at : places_of(runs)) {
    std::vector<std::string> cells{std::to_string(at.first), std::to_string(at.second)};
    for (const named_sweep& run : runs) {
      cells.push_back(value_text(run.figures, at, metric));
      if (&run != &runs[0])
        cells.push_back(ratio_text(runs[0].figures, run.figures, at, metric, lengths_differ));
    }
    for (const reference& each : references)
      cells.push_back(value_text(each.figures, at, metric));
    out += markdown_row(cells);
  }
  return out + "\n";
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
  bool lengths_differ = false;
  for (const sweep_metric& metric : sweep_metrics())
    tables += metric_table(runs, references, metric, lengths_differ);
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
  if (lengths_differ)
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
      for (const place& at : places)
        line.values.push_back(value_at(run.figures, at, metric));
      one.series.push_back(std::move(line));
    }
    out.emplace_back(metric.file, std::move(one));
  }
  return out;
}

} // namespace twill::bench
