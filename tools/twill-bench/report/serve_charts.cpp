#include "tools/twill-bench/report/serve_charts.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

#include "tools/twill-bench/engine/stats.hpp"
#include "tools/twill-bench/engine/text.hpp"
#include "tools/twill-bench/report/buckets.hpp"

namespace twill::bench {
namespace {

constexpr std::size_t most_slices = 120;
constexpr std::size_t distribution_buckets = 24, load_buckets = 10;

/// The completed requests that count, because they are within the part of the run that
/// --warmup-percent and --cooldown-percent leave.
std::vector<const record*> counted(const report_input& in) {
  std::vector<const record*> out;
  const auto& m = in.metrics;
  const bool all = m.outside_window == 0;
  for (const record& one : in.run.records)
    if (one.how == outcome::completed &&
        (all || (one.start_s >= m.window_from_s && one.start_s <= m.window_to_s)))
      out.push_back(&one);
  return out;
}

chart distribution(const std::string& title, const std::vector<double>& values_ms,
                   const std::string& of_what) {
  chart out;
  out.bars = true;
  out.title = title;
  out.y_title = of_what;
  out.x_title = "from (ms)";
  const buckets ranges = buckets_for(values_ms, distribution_buckets);
  out.places = ranges.names();
  std::vector<std::optional<double>> counts(ranges.bounds.size(), 0.0);
  for (const double value : values_ms)
    counts[ranges.of(value)] = *counts[ranges.of(value)] + 1;
  out.series = {{of_what, std::move(counts)}};
  out.now = "median " + fixed(percentile(values_ms, 50), 1) + ", P95 " +
            fixed(percentile(values_ms, 95), 1) + ", P99 " + fixed(percentile(values_ms, 99), 1) +
            " ms";
  return out;
}

/// Median and P95 of latencies over ranges of a load; each point is a pair of a load and a latency.
chart against(const std::string& title, const std::string& x_title,
              const std::vector<std::pair<double, double>>& points) {
  std::vector<double> loads;
  for (const auto& [load, latency] : points)
    loads.push_back(load);
  const buckets ranges = buckets_for(loads, load_buckets);
  std::vector<std::vector<double>> sorted(ranges.bounds.size());
  for (const auto& [load, latency] : points)
    sorted[ranges.of(load)].push_back(latency);
  chart out;
  out.title = title;
  out.x_title = x_title;
  out.y_title = "ms";
  out.series = {{"median", {}}, {"P95", {}}};
  const std::vector<std::string> names = ranges.names();
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i].empty()) continue;
    out.places.push_back(names[i]);
    out.series[0].values.emplace_back(percentile(sorted[i], 50));
    out.series[1].values.emplace_back(percentile(sorted[i], 95));
  }
  return out;
}

/// For each request of `asked`, the number of requests in flight when it was sent, including
/// itself.
std::vector<double> in_flight(const std::vector<record>& all,
                              const std::vector<const record*>& asked) {
  std::vector<double> starts, ends;
  for (const record& one : all) {
    if (one.how == outcome::unsent) continue;
    starts.push_back(one.start_s);
    ends.push_back(one.start_s + one.latency_s);
  }
  std::sort(starts.begin(), starts.end());
  std::sort(ends.begin(), ends.end());
  std::vector<double> out;
  for (const record* one : asked) {
    const auto begun = std::upper_bound(starts.begin(), starts.end(), one->start_s);
    const auto ended = std::upper_bound(ends.begin(), ends.end(), one->start_s);
    out.push_back(std::max(1.0, double((begun - starts.begin()) - (ended - ends.begin()))));
  }
  return out;
}

/// For each request of `asked`, the rate at which requests were sent around that time, computed
/// over slices that hold about ten requests.
std::vector<double> rates(const report_input& in, const std::vector<const record*>& asked) {
  const double duration = std::max(in.run.duration_s, 1e-3);
  const double length =
      std::max(duration / double(most_slices),
               10 * duration / double(std::max<std::size_t>(in.run.records.size(), 1)));
  std::vector<double> sent(static_cast<std::size_t>(duration / length) + 1, 0.0);
  const auto slice = [&](double at_s) {
    return std::min(sent.size() - 1, static_cast<std::size_t>(std::max(0.0, at_s) / length));
  };
  for (const record& one : in.run.records)
    if (one.how != outcome::unsent) sent[slice(one.start_s)] += 1 / length;
  std::vector<double> out;
  for (const record* one : asked)
    out.push_back(sent[slice(one->start_s)]);
  return out;
}

std::vector<std::optional<double>> percentiles(const std::vector<std::vector<double>>& of,
                                               double percent) {
  std::vector<std::optional<double>> out;
  for (const auto& values : of)
    out.push_back(values.empty() ? std::nullopt : std::optional(percentile(values, percent)));
  return out;
}

chart over_time(const time_slices& when, const std::string& title, const std::string& unit) {
  chart out;
  out.title = title;
  out.x_title = "time since the start (s)";
  out.y_title = unit;
  out.places = when.names();
  return out;
}

} // namespace

time_slices::time_slices(double duration_s) {
  length_s = std::max(1.0, std::ceil(duration_s / double(most_slices)));
  n = static_cast<std::size_t>(std::max(0.0, duration_s) / length_s) + 1;
}

std::size_t time_slices::of(double at_s) const {
  return std::min(n - 1, static_cast<std::size_t>(std::max(0.0, at_s) / length_s));
}

std::vector<std::string> time_slices::names() const {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < n; ++i)
    out.push_back(fixed(double(i) * length_s, 0));
  return out;
}

std::vector<chart> distribution_charts(const report_input& in) {
  std::vector<double> ttft, itl, e2el;
  for (const record* one : counted(in)) {
    if (one->has_ttft) ttft.push_back(one->ttft_s * 1e3);
    for (const float gap : one->itl_s)
      itl.push_back(double(gap) * 1e3);
    e2el.push_back(one->latency_s * 1e3);
  }
  std::vector<chart> out;
  if (!ttft.empty()) out.push_back(distribution("Time to first token (TTFT)", ttft, "requests"));
  if (!itl.empty()) out.push_back(distribution("Time between tokens (ITL)", itl, "gaps"));
  if (!e2el.empty()) out.push_back(distribution("End-to-end latency (E2EL)", e2el, "requests"));
  return out;
}

std::vector<chart> load_charts(const report_input& in) {
  const auto asked = counted(in);
  const auto by_rate = rates(in, asked), by_flight = in_flight(in.run.records, asked);
  std::vector<chart> out;
  for (const auto& [loads, words, x_title] :
       {std::tuple(&by_rate, "the rate of requests", "requests sent per second, from"),
        std::tuple(&by_flight, "requests in flight", "requests in flight, from")}) {
    std::vector<std::pair<double, double>> first, whole;
    for (std::size_t i = 0; i < asked.size(); ++i) {
      if (asked[i]->has_ttft) first.emplace_back((*loads)[i], asked[i]->ttft_s * 1e3);
      whole.emplace_back((*loads)[i], asked[i]->latency_s * 1e3);
    }
    for (const auto& [what, points] : {std::pair("TTFT", &first), std::pair("E2EL", &whole)}) {
      chart one = against(std::string(what) + " against " + words, x_title, *points);
      if (one.places.size() > 1) out.push_back(std::move(one));
    }
  }
  return out;
}

std::vector<chart> time_charts(const report_input& in) {
  const time_slices when(in.run.duration_s);
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
  chart first = over_time(when, "TTFT over time", "ms");
  first.series = {{"median", percentiles(ttft, 50)}, {"P95", percentiles(ttft, 95)}};
  chart whole = over_time(when, "E2EL over time", "ms");
  whole.series = {{"median", percentiles(e2el, 50)}, {"P95", percentiles(e2el, 95)}};
  return {rate, first, whole};
}

} // namespace twill::bench
