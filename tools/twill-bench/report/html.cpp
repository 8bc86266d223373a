#include "tools/twill-bench/report/html.hpp"

#include <sys/utsname.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "net/http/page_files.hpp"
#include "tools/twill-bench/engine/stats.hpp"
#include "tools/twill-bench/engine/text.hpp"
#include "tools/twill-bench/sweep/tables.hpp"

namespace twill::bench {
namespace {

constexpr std::size_t most_slices = 120;

std::string_view file(std::string_view name) {
  for (const auto& one : net::page_files())
    if (one.name == name) return one.bytes;
  throw std::logic_error("no page has a file " + std::string(name));
}

/// What the pages of the daemon need not say of themselves.
constexpr std::string_view own_style =
    "body{max-width:76rem;margin:0 auto;padding:1.5rem 1.25rem 3rem}h1{font-size:var(--huge)}"
    "h2{font-size:var(--large);margin:1.5rem 0 .5rem}pre{background:var(--sunk);padding:1rem;"
    "overflow:auto;font-family:var(--mono);font-size:var(--small)}td,th{text-align:end;"
    "white-space:nowrap}.charts{display:grid;gap:1rem;margin:1rem 0;"
    "grid-template-columns:repeat(auto-fit,minmax(min(100%,30rem),1fr))}noscript "
    "svg{max-width:100%;"
    "height:auto}";

/// Draws what draw() left in the page.
constexpr std::string_view own_script = R"js(
for (const place of document.querySelectorAll(".charts > div")) {
  const { title, names, ...data } = JSON.parse(place.querySelector("script").textContent);
  const chart = new LineChart(title, names);
  place.append(chart.element);
  chart.show(data);
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

/// A JSON string that may stand inside a script element.
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

/// "[...]" of what `entry` gives for each.
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

/// A chart as data for the script, and as SVG for those who run none.
std::string draw(const chart& of) {
  const auto name = [](const chart_series& one) { return quoted(one.name); };
  const auto values = [](const chart_series& one) { return array_of(one.values, number); };
  const std::string unit = of.y_title.empty() ? "" : " (" + of.y_title + ")";
  return "<div><script type=\"application/json\">{\"title\":" + quoted(of.title + unit) +
         ",\"names\":" + array_of(of.series, name) + ",\"places\":" + array_of(of.places, quoted) +
         ",\"xTitle\":" + quoted(of.x_title) + ",\"now\":" + quoted(of.x_title) +
         ",\"series\":" + array_of(of.series, values) + "}</script><noscript>" + svg_chart(of) +
         "</noscript></div>\n";
}

std::string draw(const std::vector<chart>& all) {
  std::string out = "<div class=\"charts\">\n";
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

std::string rows(const std::vector<std::vector<std::string>>& all) {
  std::string out =
      "<div class=\"table\" tabindex=\"0\" role=\"region\" aria-label=\"Table\"><table>\n";
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string tag = i == 0 ? "th" : "td";
    out += "<tr>";
    for (const std::string& field : all[i])
      out += "<" + tag + ">" + escape_markup(field) + "</" + tag + ">";
    out += "</tr>\n";
  }
  return out + "</table></div>\n";
}

/// Seconds cut into at most `most_slices` slices of whole seconds.
struct slices {
  double length_s = 1;
  std::size_t n = 1;

  explicit slices(double duration_s) {
    length_s = std::max(1.0, std::ceil(duration_s / double(most_slices)));
    n = static_cast<std::size_t>(std::max(0.0, duration_s) / length_s) + 1;
  }
  std::size_t of(double at_s) const {
    return std::min(n - 1, static_cast<std::size_t>(std::max(0.0, at_s) / length_s));
  }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (std::size_t i = 0; i < n; ++i)
      out.push_back(fixed(double(i) * length_s, 0));
    return out;
  }
};

std::vector<std::optional<double>> medians(const std::vector<std::vector<double>>& of) {
  std::vector<std::optional<double>> out;
  for (const auto& values : of)
    out.push_back(values.empty() ? std::nullopt : std::optional(percentile(values, 50)));
  return out;
}

std::vector<std::vector<std::string>> machine_facts() {
  std::vector<std::vector<std::string>> out{{"machine", ""}};
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

chart over_time(const slices& when, const std::string& title, const std::string& unit) {
  chart out;
  out.title = title;
  out.x_title = "time since the start (s)";
  out.y_title = unit;
  out.places = when.names();
  return out;
}

} // namespace

std::vector<chart> serve_charts(const report_input& in) {
  const slices when(in.run.duration_s);
  std::vector<double> tokens(when.n, 0.0);
  std::vector<std::vector<double>> ttft(when.n), e2el(when.n);
  for (const record& one : in.run.records) {
    if (one.how != outcome::completed) continue;
    const double weight = double(one.output_tokens) / double(one.itl_s.size() + 1);
    double at = one.start_s + (one.has_ttft ? one.ttft_s : one.latency_s);
    tokens[when.of(at)] += weight / when.length_s;
    for (const float gap : one.itl_s)
      tokens[when.of(at += double(gap))] += weight / when.length_s;
    if (one.has_ttft) ttft[when.of(one.start_s)].push_back(one.ttft_s * 1e3);
    e2el[when.of(one.start_s)].push_back(one.latency_s * 1e3);
  }
  chart rate = over_time(when, "Output tokens over time", "tokens/s");
  rate.series = {{"output tokens/s", {tokens.begin(), tokens.end()}}};
  chart first = over_time(when, "Time to first token over time", "ms");
  first.series = {{"median TTFT", medians(ttft)}};
  chart whole = over_time(when, "End-to-end latency over time", "ms");
  whole.series = {{"median E2EL", medians(e2el)}};
  return {rate, first, whole};
}

namespace {

/// Millions for what the axis has no room for.
double unit_of(const std::vector<std::pair<double, double>>& points, bool counter) {
  double most = 0;
  for (const auto& [at_s, value] : points)
    most = std::max(most, std::abs(counter ? value - points.front().second : value));
  return most >= 1e7 ? 1e6 : 1;
}

} // namespace

std::vector<chart> server_charts(const scrape_log& server) {
  std::vector<chart> out;
  for (const auto& [name, series] : server) {
    const auto& points = series.points;
    const auto changed = [&](const auto& point) { return point.second != points[0].second; };
    if (!std::any_of(points.begin(), points.end(), changed)) continue;
    chart one;
    const std::string metric = name.substr(0, name.find('{'));
    const bool alone = std::count_if(server.begin(), server.end(), [&](const auto& each) {
                         return each.first.substr(0, each.first.find('{')) == metric;
                       }) == 1;
    one.title = alone ? metric : name; // labels only where they tell series apart
    one.x_title = "time since the start (s)";
    const double unit = unit_of(points, series.counter);
    one.y_title = std::string(unit > 1 ? "millions " : "") + (series.counter ? "per second" : "");
    one.series = {{series.counter ? "rate" : "value", {}}};
    const std::size_t step = points.size() / most_slices + 1;
    for (std::size_t i = series.counter ? step : 0; i < points.size(); i += step) {
      one.places.push_back(fixed(points[i].first, 0));
      const double span_s = series.counter ? points[i].first - points[i - step].first : 1;
      const double before = series.counter ? points[i - step].second : 0;
      one.series[0].values.emplace_back((points[i].second - before) / std::max(1e-9, span_s) /
                                        unit);
    }
    out.push_back(std::move(one));
  }
  return out;
}

std::string serve_page(const report_input& in, const std::vector<std::string>& remarks,
                       const scrape_log& server) {
  const serve_options& o = in.options;
  const std::string rate =
      std::isinf(o.request_rate_per_s) ? "no limit" : fixed(o.request_rate_per_s, 3) + "/s";
  std::string body = "<pre>" + escape_markup(report_table(in) + repeats_table(in.repeats)) +
                     "</pre>\n" + list(remarks);
  body += draw(serve_charts(in));
  body +=
      "<h2>What was asked</h2>\n" +
      rows({{"option", "value"},
            {"server", o.base_url},
            {"backend", o.backend},
            {"model", o.model},
            {"requests", std::to_string(o.n_prompts)},
            {"request rate", rate},
            {"most in flight", o.max_concurrency ? std::to_string(o.max_concurrency) : "no limit"},
            {"input tokens", std::to_string(o.input_tokens)},
            {"output tokens", std::to_string(o.output_tokens)},
            {"data set", o.prompt.empty() ? o.dataset : "one fixed text"},
            {"ignore_eos", o.ignore_eos ? "yes" : "no"},
            {"seed", std::to_string(o.seed)},
            {"date", in.date}});
  body += "<h2>Where the client ran</h2>\n" + rows(machine_facts());
  const std::vector<chart> told = server_charts(server);
  if (!told.empty()) body += "<h2>The server's metrics</h2>\n" + draw(told);
  return page(o.model + ": " + o.backend + ", " + in.date, body);
}

std::string sweep_page(const sweep& of) {
  std::vector<std::string> head{"Input Length", "Output Length"};
  for (const sweep_metric& metric : sweep_metrics())
    head.emplace_back(metric.heading);
  std::vector<std::vector<std::string>> table{head};
  for (const sweep_cell& cell : of.cells) {
    std::vector<std::string> row{std::to_string(cell.input_tokens),
                                 std::to_string(cell.output_tokens)};
    for (const sweep_metric& metric : sweep_metrics()) {
      const auto value = value_of(cell, metric);
      row.push_back(value ? fixed(*value, 2) : !cell.skipped.empty() ? "skipped" : "none");
    }
    table.push_back(std::move(row));
  }
  const sweep_setup& s = of.setup;
  std::string body = "<p>" + escape_markup(s.server.empty() ? s.backend : s.server) + ", " +
                     escape_markup(s.hardware.empty() ? "hardware not told" : s.hardware) + ", " +
                     escape_markup(s.date) + "</p>\n" + rows(table) + list(sweep_remarks(of));
  std::vector<chart> charts;
  for (const auto& [name, each] : sweep_charts(of))
    charts.push_back(each);
  body += draw(charts);
  return page(s.title, body);
}

} // namespace twill::bench
