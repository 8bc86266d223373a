#include "tools/twill-bench/runs/sweep_report.hpp"

#include <set>

#include "tools/twill-bench/engine/text.hpp"
#include "tools/twill-bench/report/charts.hpp"
#include "tools/twill-bench/report/html.hpp"
#include "tools/twill-bench/report/markdown.hpp"
#include "tools/twill-bench/report/write_file.hpp"
#include "tools/twill-bench/runs/doubts.hpp"

namespace twill::bench {
namespace {

std::string published_table(const sweep& of) {
  std::vector<std::string> names{"Input Length", "Output Length"};
  for (const sweep_metric& metric : sweep_metrics())
    names.emplace_back(metric.heading);
  std::string out = markdown_heading(names);
  for (const sweep_cell& cell : of.cells) {
    std::vector<std::string> fields{std::to_string(cell.input_tokens),
                                    std::to_string(cell.output_tokens)};
    for (const sweep_metric& metric : sweep_metrics())
      if (const auto value = value_of(cell, metric))
        fields.push_back(fixed(*value, 2));
      else
        fields.push_back(absence_of(cell, metric));
    out += markdown_row(fields);
  }
  return out;
}

std::string details_table(const sweep& of) {
  std::string out =
      markdown_heading({"Input", "Output", "Phase", "Requests", "At once", "Actual input (mean)",
                        "Actual output (mean)", "Stopped early", "Cut", "Failed",
                        "TTFT median (ms)", "TPOT median (ms)", "ITL P99 (ms)", "Duration (s)"});
  for (const sweep_cell& cell : of.cells)
    for (const bool throughput : {false, true}) {
      const auto& phase = throughput ? cell.throughput : cell.latency;
      if (!phase) continue;
      out += markdown_row({std::to_string(cell.input_tokens), std::to_string(cell.output_tokens),
                           throughput ? "throughput" : "latency", fixed(phase->asked, 0),
                           fixed(phase->concurrency, 0), fixed(phase->input_tokens, 1),
                           fixed(phase->output_tokens, 1), fixed(phase->stopped_early, 0),
                           fixed(phase->context_limited, 0), fixed(phase->failed, 0),
                           fixed(phase->median_ttft_ms, 1), fixed(phase->median_tpot_ms, 2),
                           fixed(phase->p99_itl_ms, 2), fixed(phase->duration_s, 1)});
    }
  return out;
}

std::string method(const sweep& of) {
  const sweep_setup& s = of.setup;
  std::string out = "Throughput: " + std::to_string(s.throughput_requests) + " requests, ";
  out += s.throughput_concurrency == 0
             ? "all at once"
             : "at most " + std::to_string(s.throughput_concurrency) + " in flight";
  out += ". Latency: " + std::to_string(s.latency_requests) +
         " requests, one after the other. Random prompts, new ones in every phase; seed " +
         std::to_string(s.seed) + ". Backend " + s.backend + ", ignore_eos " +
         (s.ignore_eos ? "asked for" : "not asked for") +
         ". Latencies are divided by each request's actual lengths. Measured by twill-bench " +
         TWILL_VERSION + " (" + s.date + ").\n";
  return out;
}

void put_phase(std::string& out, const sweep_cell& cell, const run_figures& of, bool throughput) {
  out += std::to_string(cell.input_tokens) + "," + std::to_string(cell.output_tokens) + "," +
         (throughput ? "throughput" : "latency");
  for (const figure_entry& each : all_figures())
    if (each.column != nullptr) out += "," + fixed(of.*each.member, each.digits);
  out += "\n";
}

} // namespace

std::vector<std::string> sweep_remarks(const sweep& of) {
  std::vector<const run_figures*> phases;
  for (const sweep_cell& cell : of.cells)
    for (const auto* phase : {&cell.latency, &cell.throughput})
      if (*phase) phases.push_back(&**phase);
  const run_figures total = total_of(phases);
  std::vector<std::string> out;
  if (of.interrupted) out.emplace_back("Interrupted: partial results; the same command goes on.");
  if (of.setup.ignore_eos && total.completed > 0 && total.stopped_early == 0)
    out.emplace_back("ignore_eos was honoured: no request stopped early.");
  const std::vector<std::string> doubts = doubts_about(total, of.setup.ignore_eos);
  out.insert(out.end(), doubts.begin(), doubts.end());
  return out;
}

std::string sweep_markdown(const sweep& of, const std::string& image) {
  const sweep_setup& s = of.setup;
  std::string out = "# " + s.title + "\n\n## " +
                    (s.hardware.empty() ? "hardware unknown" : s.hardware) + "\n\n## " +
                    (s.server.empty() ? s.backend : s.server) + "\n\n" + published_table(of) + "\n";
  for (const std::string& line : sweep_remarks(of))
    out += "- " + line + "\n";
  std::set<std::string> why;
  for (const sweep_cell& cell : of.cells)
    if (!cell.skipped.empty()) why.insert(cell.skipped);
  for (const std::string& each : why)
    out += "- Skipped: " + each + " tokens.\n";
  out += "\n" + method(of) + "\n";
  for (const sweep_metric& metric : sweep_metrics())
    out += std::string("## ") + metric.heading + "\n![" + metric.heading + "](./" + metric.file +
           "." + image + ")\n\n";
  return out + "## Behind the figures\n\n" + details_table(of);
}

std::string sweep_csv(const sweep& of) {
  std::string out = "input_len,output_len,phase";
  for (const figure_entry& each : all_figures())
    if (each.column != nullptr) out += std::string(",") + each.column;
  out += "\n";
  for (const sweep_cell& cell : of.cells) {
    if (cell.latency) put_phase(out, cell, *cell.latency, false);
    if (cell.throughput) put_phase(out, cell, *cell.throughput, true);
  }
  return out;
}

std::vector<std::pair<std::string, chart>> sweep_charts(const sweep& of) {
  std::set<std::int32_t> inputs, outputs;
  for (const sweep_cell& cell : of.cells) {
    inputs.insert(cell.input_tokens);
    outputs.insert(cell.output_tokens);
  }
  std::vector<std::pair<std::string, chart>> out;
  for (const sweep_metric& metric : sweep_metrics()) {
    chart one;
    one.subject = of.setup.title;
    one.title = metric.name;
    one.x_title = "output length (tokens)";
    one.y_title = metric.unit;
    for (const std::int32_t output : outputs)
      one.places.push_back(std::to_string(output));
    for (const std::int32_t input : inputs) {
      chart_series line;
      line.name = "input " + std::to_string(input);
      for (const std::int32_t output : outputs) {
        const sweep_cell* cell = find_cell(of, input, output);
        line.values.push_back(cell == nullptr ? std::nullopt : value_of(*cell, metric));
      }
      one.series.push_back(std::move(line));
    }
    out.emplace_back(metric.file, std::move(one));
  }
  return out;
}

std::string write_sweep(const std::string& folder, const sweep& of) {
  write_file(folder + "/sweep.md", sweep_markdown(of, "svg"));
  write_file(folder + "/sweep.html", sweep_page(of));
  write_file(folder + "/sweep.csv", sweep_csv(of));
  return write_charts(folder, sweep_charts(of));
}

} // namespace twill::bench
