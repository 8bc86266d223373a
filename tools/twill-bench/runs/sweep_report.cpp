#include "tools/twill-bench/runs/sweep_report.hpp"

#include <algorithm>
#include <set>

#include "tools/twill-bench/engine/text.hpp"
#include "tools/twill-bench/report/charts.hpp"
#include "tools/twill-bench/report/html.hpp"
#include "tools/twill-bench/report/markdown.hpp"
#include "tools/twill-bench/report/write_file.hpp"

namespace twill::bench {
namespace {

std::string value_text(const sweep_cell& cell, const sweep_metric& metric) {
  const auto value = value_of(cell, metric);
  if (value) return fixed(*value, 2);
  const auto& phase = metric.from_throughput ? cell.throughput : cell.latency;
  return !cell.skipped.empty() ? "skipped" : phase ? "failed" : "not run";
}

std::string published_table(const sweep& of) {
  std::vector<std::string> names{"Input Length", "Output Length"};
  for (const sweep_metric& metric : sweep_metrics())
    names.emplace_back(metric.heading);
  std::string out = markdown_heading(names);
  for (const sweep_cell& cell : of.cells) {
    std::vector<std::string> fields{std::to_string(cell.input_tokens),
                                    std::to_string(cell.output_tokens)};
    for (const sweep_metric& metric : sweep_metrics())
      fields.push_back(value_text(cell, metric));
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
  for (const double value :
       {of.asked, of.completed, of.failed, of.stopped_early, of.context_limited, of.concurrency})
    out += "," + fixed(value, 0);
  for (const double value :
       {of.duration_s, of.input_tokens, of.output_tokens, of.requests_per_s, of.output_tokens_per_s,
        of.ms_per_token, of.ms_per_output_token, of.mean_ttft_ms, of.median_ttft_ms, of.p99_ttft_ms,
        of.mean_tpot_ms, of.median_tpot_ms, of.p99_tpot_ms, of.mean_itl_ms, of.median_itl_ms,
        of.p99_itl_ms, of.mean_e2el_ms, of.median_e2el_ms, of.p99_e2el_ms})
    out += "," + fixed(value, 4);
  out += "\n";
}

struct tally {
  double completed = 0, failed = 0, early = 0, cut = 0, counted = 0, mismatched = 0, busiest = 0;
};

tally tally_of(const sweep& of) {
  tally out;
  for (const sweep_cell& cell : of.cells)
    for (const auto* phase : {&cell.latency, &cell.throughput}) {
      if (!*phase) continue;
      out.completed += (*phase)->completed;
      out.failed += (*phase)->failed;
      out.early += (*phase)->stopped_early;
      out.cut += (*phase)->context_limited;
      out.counted += (*phase)->counted_lengths;
      out.mismatched += (*phase)->input_mismatches;
      out.busiest = std::max(out.busiest, (*phase)->client_cpu_share);
    }
  return out;
}

} // namespace

std::vector<std::string> sweep_remarks(const sweep& of) {
  const tally all = tally_of(of);
  const std::string of_all = " of " + fixed(all.completed, 0) + " requests";
  std::vector<std::string> out;
  if (of.interrupted) out.emplace_back("Interrupted: partial results; the same command goes on.");
  if (of.setup.ignore_eos && all.completed > 0)
    out.push_back(all.early == 0
                      ? "ignore_eos was honoured: no request stopped early."
                      : "ignore_eos was NOT honoured: " + fixed(all.early, 0) + of_all +
                            " stopped early; requests/s do not compare with full-length runs.");
  else if (all.early > 0)
    out.push_back(fixed(all.early, 0) + of_all + " stopped before the length asked for.");
  if (all.cut > 0)
    out.push_back(fixed(all.cut, 0) + of_all + " were cut below the length asked for.");
  if (all.failed > 0) {
    out.push_back(fixed(all.failed, 0) + " requests failed.");
    for (const sweep_cell& cell : of.cells)
      for (const auto* phase : {&cell.latency, &cell.throughput})
        if (*phase && !(*phase)->first_error.empty()) {
          out.push_back("First error: " + (*phase)->first_error);
          return out;
        }
  }
  if (all.counted > 0)
    out.push_back("The server gave no usage in " + fixed(all.counted, 0) + of_all +
                  ": output lengths were counted from chunks.");
  if (all.mismatched > 0)
    out.push_back("The server counted another prompt length than was sent in " +
                  fixed(all.mismatched, 0) + of_all + " (special or template tokens).");
  if (all.busiest > 0.8)
    out.push_back("The client was busy: an I/O thread used " + fixed(all.busiest * 100, 0) +
                  " % of a core.");
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
  std::string out =
      "input_len,output_len,phase,requests,completed,failed,stopped_early,context_limited,"
      "concurrency,duration_s,mean_input_tokens,mean_output_tokens,request_throughput,"
      "output_throughput,mean_latency_per_token_ms,mean_latency_per_output_token_ms,"
      "mean_ttft_ms,median_ttft_ms,p99_ttft_ms,mean_tpot_ms,median_tpot_ms,p99_tpot_ms,"
      "mean_itl_ms,median_itl_ms,p99_itl_ms,mean_e2el_ms,median_e2el_ms,p99_e2el_ms\n";
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
        const auto cell = std::find_if(of.cells.begin(), of.cells.end(), [&](const auto& c) {
          return c.input_tokens == input && c.output_tokens == output;
        });
        line.values.push_back(cell == of.cells.end() ? std::nullopt : value_of(*cell, metric));
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
