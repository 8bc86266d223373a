#include "tools/twill-bench/report/html.hpp"

#include <sys/utsname.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "net/http/page_files.hpp"
#include "tools/twill-bench/engine/text.hpp"
#include "tools/twill-bench/report/serve_charts.hpp"
#include "tools/twill-bench/report/server_charts.hpp"
#include "tools/twill-bench/report/svg_chart.hpp"
#include "tools/twill-bench/runs/sweep_report.hpp"

namespace twill::bench {
namespace {

std::string_view file(std::string_view name) {
  for (const auto& one : net::page_files())
    if (one.name == name) return one.bytes;
  throw std::logic_error("no page has a file " + std::string(name));
}

/// CSS rules that this page needs in addition to those of the daemon's pages. Column headings wrap
/// between words, so that all columns are visible at once.
constexpr std::string_view own_style =
    "body{max-width:76rem;margin:0 auto;padding:1.5rem 1.25rem 3rem}h1{font-size:var(--huge);"
    "overflow-wrap:anywhere}h2{font-size:var(--large);margin:1.75rem 0 .5rem}pre{"
    "background:var(--sunk);padding:1rem;overflow:auto;font-family:var(--mono);"
    "font-size:var(--small)}.table{margin:.75rem 0}td,th{text-align:end;vertical-align:bottom}"
    "td{white-space:nowrap}td:first-child,th:first-child{text-align:start;white-space:normal}"
    ".facts th{text-align:start}.facts "
    "td{white-space:normal;overflow-wrap:anywhere;text-align:start}"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(8.5rem,1fr));gap:.75rem;"
    "margin:1rem 0}.tiles div{background:var(--raised);border:1px solid var(--line);"
    "border-radius:var(--round);padding:.5rem .75rem}.tiles dt{color:var(--soft);"
    "font-size:var(--small)}.tiles dd{margin:0;font-size:var(--large);"
    "font-variant-numeric:tabular-nums}main>details{margin:1.25rem 0}main>details>summary{"
    "cursor:pointer}.charts{display:grid;gap:1.25rem 1.5rem;margin:1rem 0;"
    "grid-template-columns:repeat(auto-fit,minmax(min(100%,22rem),1fr))}.charts.pairs{"
    "grid-template-columns:repeat(auto-fit,minmax(min(100%,30rem),1fr))}noscript "
    "svg{max-width:100%;height:auto}@media(max-width:40rem){td,th{font-size:.75rem;"
    "padding-right:.25rem}th{font-size:.6875rem}body{padding:1rem .75rem 2rem}}";

/// Draws the charts whose data draw() has put into the page.
constexpr std::string_view own_script = R"js(
for (const place of document.querySelectorAll(".charts > div")) {
  const { title, names, bars, ...data } = JSON.parse(place.querySelector("script").textContent);
  const chart = bars ? new BarChart(title, data.xTitle) : new LineChart(title, names);
  place.append(chart.element);
  chart.show(bars ? { names: data.places, counts: data.series[0], now: data.now } : data);
}
)js";

std::string page(const std::string& title, const std::string& body) {
  std::string out = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                    "<meta name=\"color-scheme\" content=\"light dark\">\n<title>";
  out += escape_markup(title);
  out += "</title>\n<style>";
  for (const auto style : {file("look.css"), file("chart.css"), own_style})
    out += style;
  out += "</style></head>\n<body>\n<main>\n<h1>" + escape_markup(title) + "</h1>\n" + body;
  out += "<p class=\"hint\">twill-bench " TWILL_VERSION "</p>\n</main>\n<script type=\"module\">\n";
  out += file("chart.js");
  out += own_script;
  return out + "</script>\n</body></html>\n";
}

/// `text` as a JSON string that may stand inside a script element.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&') {
      constexpr char digits[] = "0123456789abcdef";
      out += "\\u00";
      out += digits[byte >> 4];
      out += digits[byte & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

/// "[...]" with the result of `entry` for each element.
template <class Range, class Entry>
std::string array_of(const Range& all, Entry entry) {
  std::string out = "[";
  for (const auto& one : all)
    out += (out.size() > 1 ? "," : "") + entry(one);
  return out + "]";
}

std::string number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? fixed(*value, 6) : "null";
}

/// A chart as data for the script, and as SVG for readers without JavaScript.
std::string draw(const chart& of) {
  const auto name = [](const chart_series& one) { return quoted(one.name); };
  const auto values = [](const chart_series& one) { return array_of(one.values, number); };
  const std::string unit = of.y_title.empty() || of.bars ? "" : " (" + of.y_title + ")";
  chart alone = of; // the heading of the page already says the subject
  alone.subject.clear();
  return "<div><script type=\"application/json\">{\"title\":" + quoted(of.title + unit) +
         ",\"bars\":" + (of.bars ? "true" : "false") + ",\"names\":" + array_of(of.series, name) +
         ",\"places\":" + array_of(of.places, quoted) + ",\"xTitle\":" + quoted(of.x_title) +
         ",\"now\":" + quoted(of.now.empty() ? of.x_title : of.now) +
         ",\"series\":" + array_of(of.series, values) + "}</script><noscript>" + svg_chart(alone) +
         "</noscript></div>\n";
}

std::string draw(const std::vector<chart>& all) {
  const bool pairs = all.size() % 2 == 0 && all.size() % 3 != 0;
  std::string out = pairs ? "<div class=\"charts pairs\">\n" : "<div class=\"charts\">\n";
  for (const chart& one : all)
    out += draw(one);
  return out + "</div>\n";
}

std::string list(const std::vector<std::string>& lines) {
  std::string out = "<ul>\n";
  for (const std::string& line : lines)
    out += "<li>" + escape_markup(line) + "</li>\n";
  return out + "</ul>\n";
}

/// A table. `label` is its name for screen readers; `kind` is "facts" for a table of names and
/// texts, else empty.
std::string rows(const std::string& label, const std::vector<std::vector<std::string>>& all,
                 const std::string& kind = {}) {
  std::string out = "<div class=\"table " + kind +
                    "\" tabindex=\"0\" role=\"region\" aria-label=\"" + label + "\"><table>\n";
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string tag = i == 0 ? "th" : "td";
    out += "<tr>";
    for (const std::string& field : all[i])
      out += "<" + tag + ">" + escape_markup(field) + "</" + tag + ">";
    out += "</tr>\n";
  }
  return out + "</table></div>\n";
}

std::vector<std::vector<std::string>> machine_facts() {
  std::vector<std::vector<std::string>> out{{"what", "which"}};
  utsname name{};
  if (uname(&name) == 0)
    out.push_back({"system", std::string(name.sysname) + " " + name.release + " " + name.machine});
  std::ifstream cpus("/proc/cpuinfo");
  for (std::string line; std::getline(cpus, line);)
    if (line.rfind("model name", 0) == 0) {
      out.push_back({"processor", line.substr(std::min(line.size(), line.find(':') + 2))});
      break;
    }
  out.push_back({"cores", std::to_string(std::thread::hardware_concurrency())});
  return out;
}

/// A figure as text with about four digits, for a table.
std::string figure(double value) {
  const double size = std::abs(value);
  if (!std::isfinite(value)) return "none";
  if (size >= 1000) return fixed(value, 0);
  return fixed(value, size >= 100 ? 1 : size >= 10 ? 2 : size >= 0.1 || size == 0 ? 3 : 5);
}

/// A table of latencies with a row for each kind of latency and a column for each statistic.
std::string latency_table(const report_input& in) {
  const serve_metrics& m = in.metrics;
  std::vector<std::vector<std::string>> table{{"ms", "Mean", "Median"}};
  for (const double percent : in.options.metric_percentiles) {
    std::string name = fixed(percent, 2);
    name.erase(name.find_last_not_of('0') + 1);
    if (name.back() == '.') name.pop_back();
    table[0].push_back("P" + name);
  }
  const auto add = [&](const char* name, const summary& of) {
    table.push_back({name, figure(of.mean), figure(of.median)});
    for (const double value : of.percentiles)
      table.back().push_back(figure(value));
  };
  if (in.options.stream) {
    add("Time to first token (TTFT)", m.ttft_ms);
    add("Time per output token (TPOT)", m.tpot_ms);
    add("Time between tokens (ITL)", m.itl_ms);
  }
  add("End-to-end latency (E2EL)", m.e2el_ms);
  return rows("Latencies", table);
}

std::string main_figures(const report_input& in) {
  const serve_metrics& m = in.metrics;
  std::string out = "<dl class=\"tiles\">";
  const auto tile = [&](const std::string& name, const std::string& value) {
    out += "<div><dt>" + escape_markup(name) + "</dt><dd>" + escape_markup(value) + "</dd></div>";
  };
  tile("Completed", std::to_string(m.completed));
  if (m.failed > 0) tile("Failed", std::to_string(m.failed));
  if (m.cancelled > 0) tile("Cancelled", std::to_string(m.cancelled));
  tile("Requests/s", figure(m.request_throughput));
  tile("Output tokens/s", figure(m.output_throughput));
  tile("Duration", fixed(in.run.duration_s, 1) + " s");
  tile("Most in flight", std::to_string(m.peak_in_flight));
  return out + "</dl>\n";
}

std::string rate_text(const serve_options& o) {
  if (o.dataset == "trace") return "as the trace has it";
  if (!o.ramp.empty())
    return o.ramp + " ramp from " + figure(o.ramp_start_per_s) + "/s to " +
           figure(o.ramp_end_per_s) + "/s";
  return std::isinf(o.request_rate_per_s) ? "no limit" : figure(o.request_rate_per_s) + "/s";
}

std::string section(const std::string& heading, const std::vector<chart>& charts) {
  return charts.empty() ? std::string() : "<h2>" + heading + "</h2>\n" + draw(charts);
}

std::string server_section(const scrape_log& server) {
  const server_chart_list charts = server_charts(server);
  if (charts.known.empty()) return section("The server's metrics", charts.others);
  std::string out = section("The server's metrics", charts.known);
  if (charts.others.empty()) return out;
  return out + "<details><summary>Other metrics that changed (" +
         std::to_string(charts.others.size()) + ")</summary>\n" + draw(charts.others) +
         "</details>\n";
}

} // namespace

std::string serve_page(const report_input& in, const std::vector<std::string>& remarks,
                       const scrape_log& server) {
  const serve_options& o = in.options;
  std::string body = main_figures(in) + latency_table(in) + list(remarks);
  body += section("How the times are spread", distribution_charts(in));
  body += section("Latency against the load", load_charts(in));
  body += section("The run over time", time_charts(in));
  body += server_section(server);
  body +=
      "<h2>What was asked</h2>\n" +
      rows("What was asked, as a table",
           {{"option", "value"},
            {"server", o.base_url},
            {"backend", o.backend},
            {"model", o.model},
            {"requests", std::to_string(o.n_prompts)},
            {"request rate", rate_text(o)},
            {"most in flight", o.max_concurrency ? std::to_string(o.max_concurrency) : "no limit"},
            {"input tokens", std::to_string(o.input_tokens)},
            {"output tokens", std::to_string(o.output_tokens)},
            {"data set", o.prompt.empty() ? o.dataset : "one fixed text"},
            {"ignore_eos", o.ignore_eos ? "yes" : "no"},
            {"seed", std::to_string(o.seed)},
            {"date", in.date}},
           "facts");
  body += "<h2>Where the client ran</h2>\n" +
          rows("Where the client ran, as a table", machine_facts(), "facts");
  body += "<details><summary>The table as printed</summary>\n<pre tabindex=\"0\">" +
          escape_markup(report_table(in) + repeats_table(in.repeats)) + "</pre></details>\n";
  return page(o.model + ": " + o.backend + ", " + in.date, body);
}

std::string sweep_page(const sweep& of) {
  std::vector<std::string> head{"Input tokens", "Output tokens"};
  for (const sweep_metric& metric : sweep_metrics())
    head.emplace_back(metric.heading);
  std::vector<std::vector<std::string>> table{head};
  for (const sweep_cell& cell : of.cells) {
    std::vector<std::string> row{std::to_string(cell.input_tokens),
                                 std::to_string(cell.output_tokens)};
    for (const sweep_metric& metric : sweep_metrics()) {
      const auto value = value_of(cell, metric);
      row.push_back(value ? figure(*value) : !cell.skipped.empty() ? "skipped" : "none");
    }
    table.push_back(std::move(row));
  }
  const sweep_setup& s = of.setup;
  std::string body = "<p>" + escape_markup(s.server.empty() ? s.backend : s.server) + ", " +
                     escape_markup(s.hardware.empty() ? "hardware unknown" : s.hardware) + ", " +
                     escape_markup(s.date) + "</p>\n" + rows("Figures of each cell", table) +
                     list(sweep_remarks(of));
  std::vector<chart> charts;
  for (const auto& [name, each] : sweep_charts(of))
    charts.push_back(each);
  body += draw(charts);
  return page(s.title, body);
}

} // namespace twill::bench
