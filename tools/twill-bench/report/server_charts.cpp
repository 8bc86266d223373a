#include "tools/twill-bench/report/server_charts.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "tools/twill-bench/engine/text.hpp"

namespace twill::bench {
namespace {

constexpr std::size_t most_points = 120;

enum class kind { value, rate, mean };

/// A series to draw as one line: a gauge, a counter as a rate, or a histogram as the mean of its
/// observations.
struct reported_series {
  std::string metric, labels;
  kind shown_as = kind::value;
  std::vector<std::optional<double>> values; // (n_points)
};

struct known_line {
  const char* metric; ///< without the server's prefix
  const char* name;
};
struct known_chart {
  const char* title;
  const char* unit;
  double factor; ///< converts the unit of the metric into the unit of the chart
  std::vector<known_line> lines;
};

const std::vector<known_chart>& known_charts() {
  static const std::vector<known_chart> all{
      {"Requests",
       "",
       1,
       {{"num_requests_running", "running"}, {"num_requests_waiting", "waiting"}}},
      {"Tokens",
       "per second",
       1,
       {{"generation_tokens_total", "generated"}, {"prompt_tokens_total", "read from prompts"}}},
      {"KV cache in use", "%", 100, {{"kv_cache_usage_perc", "share in use"}}},
      {"Latency at the server, mean",
       "ms",
       1e3,
       {{"time_to_first_token_seconds", "to the first token"},
        {"request_queue_time_seconds", "waiting for admission"}}},
      {"Time between tokens at the server, mean",
       "ms",
       1e3,
       {{"inter_token_latency_seconds", "between tokens"}}},
      {"Steps, mean",
       "ms",
       1e3,
       {{"decode_step_seconds", "that only decode"},
        {"prefill_step_seconds", "that only read prompts"},
        {"mixed_step_seconds", "that do both"}}},
  };
  return all;
}

std::string without_end(const std::string& text, std::string_view end) {
  return text.size() > end.size() && std::string_view(text).substr(text.size() - end.size()) == end
             ? text.substr(0, text.size() - end.size())
             : std::string();
}

std::string_view without_prefix(std::string_view metric) {
  for (const std::string_view prefix : {"twill_", "twill:", "vllm:"})
    if (metric.substr(0, prefix.size()) == prefix) return metric.substr(prefix.size());
  return metric;
}

bool changes(const std::vector<std::pair<double, double>>& points) {
  return std::any_of(points.begin(), points.end(),
                     [&](const auto& point) { return point.second != points[0].second; });
}

class reader {
public:
  explicit reader(const scrape_log& log) : log_(log) {
    for (const auto& [name, series] : log_)
      if (series.points.size() > times_.size()) take_times(series);
  }

  std::vector<std::string> places() const {
    std::vector<std::string> out;
    for (const double at_s : times_)
      out.push_back(fixed(at_s, 0));
    return out;
  }

  /// Returns every series whose value changed.
  std::vector<reported_series> read() const {
    std::vector<reported_series> out;
    for (const auto& [name, series] : log_) {
      const std::size_t brace = std::min(name.find('{'), name.size());
      reported_series one;
      one.metric = name.substr(0, brace);
      one.labels = name.substr(brace);
      if (is_part_of_histogram(one.metric, "_count", "_sum", one.labels)) continue;
      if (!changes(series.points)) continue;
      one.shown_as = series.counter ? kind::rate : kind::value;
      const scraped_series* counts = nullptr;
      if (const std::string base = without_end(one.metric, "_sum"); !base.empty())
        if (const auto found = log_.find(base + "_count" + one.labels); found != log_.end()) {
          counts = &found->second;
          one.metric = base;
          one.shown_as = kind::mean;
        }
      one.values = values_of(series, counts, one.shown_as);
      out.push_back(std::move(one));
    }
    return out;
  }

private:
  void take_times(const scraped_series& series) {
    times_.clear();
    const std::size_t step = series.points.size() / most_points + 1;
    for (std::size_t i = 0; i < series.points.size(); i += step)
      times_.push_back(series.points[i].first);
  }

  bool is_part_of_histogram(const std::string& metric, std::string_view end, const char* other,
                            const std::string& labels) const {
    const std::string base = without_end(metric, end);
    return !base.empty() && log_.count(base + other + labels) > 0;
  }

  /// The value of a series at a time; absent before the first scrape of the series.
  static std::optional<double> at(const scraped_series& series, double at_s) {
    const auto after =
        std::upper_bound(series.points.begin(), series.points.end(), at_s,
                         [](double time, const auto& point) { return time < point.first; });
    if (after == series.points.begin()) return std::nullopt;
    return std::prev(after)->second;
  }

  std::vector<std::optional<double>> values_of(const scraped_series& series,
                                               const scraped_series* counts, kind shown_as) const {
    std::vector<std::optional<double>> out;
    for (std::size_t i = 0; i < times_.size(); ++i) {
      const auto now = at(series, times_[i]);
      if (shown_as == kind::value) {
        out.push_back(now);
        continue;
      }
      const auto before = i == 0 ? std::nullopt : at(series, times_[i - 1]);
      std::optional<double> divisor;
      if (i > 0) divisor = times_[i] - times_[i - 1];
      if (shown_as == kind::mean) {
        const auto n = at(*counts, times_[i]);
        const auto n_before = i == 0 ? std::nullopt : at(*counts, times_[i - 1]);
        divisor = n && n_before ? std::optional(*n - *n_before) : std::nullopt;
      }
      const bool known = now && before && divisor && *divisor > 0;
      out.push_back(known ? std::optional((*now - *before) / *divisor) : std::nullopt);
    }
    return out;
  }

  const scrape_log& log_;
  std::vector<double> times_; // (n_points)
};

/// The unit of the axis: 1e6 where the numbers are too long for it, else 1.
double unit_of(const reported_series& series) {
  double most = 0;
  for (const auto& value : series.values)
    if (value) most = std::max(most, std::abs(*value));
  return most >= 1e7 ? 1e6 : 1;
}

chart empty_chart(std::string title, std::string unit, const std::vector<std::string>& places) {
  chart out;
  out.title = std::move(title);
  out.x_title = "time since the start (s)";
  out.y_title = std::move(unit);
  out.places = places;
  return out;
}

void add_line(chart& to, std::string name, const reported_series& series, double factor) {
  chart_series line{std::move(name), series.values};
  for (auto& value : line.values)
    if (value) value = *value * factor;
  to.series.push_back(std::move(line));
}

chart own_chart(const reported_series& one, bool alone, const std::vector<std::string>& places) {
  const double unit = unit_of(one);
  const char* what = one.shown_as == kind::rate   ? "per second"
                     : one.shown_as == kind::mean ? "mean"
                                                  : "";
  const char* separator = unit > 1 && *what != '\0' ? " " : "";
  // The title has labels only where several series have the same metric name.
  chart out = empty_chart(alone ? one.metric : one.metric + one.labels,
                          std::string(unit > 1 ? "millions" : "") + separator + what, places);
  add_line(out, *what == '\0' ? "value" : what, one, 1 / unit);
  return out;
}

} // namespace

server_chart_list server_charts(const scrape_log& server) {
  const reader from(server);
  const auto all = from.read();
  const auto places = from.places();
  server_chart_list out;
  std::set<const reported_series*> drawn;
  for (const known_chart& known : known_charts()) {
    chart one = empty_chart(known.title, known.unit, places);
    for (const known_line& line : known.lines) {
      const auto is_it = [&](const reported_series& s) {
        return without_prefix(s.metric) == line.metric;
      };
      const bool alone = std::count_if(all.begin(), all.end(), is_it) == 1;
      for (const reported_series& series : all) {
        if (!is_it(series)) continue;
        add_line(one, alone ? line.name : line.name + (" " + series.labels), series, known.factor);
        drawn.insert(&series);
      }
    }
    if (one.series.empty()) continue;
    // A chart with a single line has no legend.
    if (one.series.size() == 1 && known.lines.size() > 1) one.title += ", " + one.series[0].name;
    out.known.push_back(std::move(one));
  }
  std::map<std::string, int> named;
  for (const reported_series& one : all)
    ++named[one.metric];
  for (const reported_series& one : all)
    if (drawn.count(&one) == 0)
      out.others.push_back(own_chart(one, named[one.metric] == 1, places));
  return out;
}

} // namespace twill::bench
