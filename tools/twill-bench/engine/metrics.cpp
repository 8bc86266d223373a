#include "tools/twill-bench/engine/metrics.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace twill::bench {
namespace {

/// Counts output tokens and requests in each second of the run, and finds the most requests at one
/// moment.
class timeline {
public:
  timeline(double first_s, double last_s) : first_s_(first_s) {
    const auto n = static_cast<std::size_t>(std::max(0.0, last_s - first_s)) + 1;
    tokens_.resize(n);
    requests_.resize(n);
  }

  void add(const record& one) {
    // A chunk may have several tokens. The record does not say how many, so the tokens of the
    // request are spread evenly over its chunks.
    const double chunks = double(one.itl_s.size() + 1);
    const double weight = double(one.output_tokens) / chunks;
    double at = one.start_s + (one.has_ttft ? one.ttft_s : one.latency_s);
    tokens_[bucket(at)] += weight;
    for (const float gap : one.itl_s) {
      at += double(gap);
      tokens_[bucket(at)] += weight;
    }
    const std::size_t last = bucket(one.start_s + one.latency_s);
    for (std::size_t i = bucket(one.start_s); i <= last; ++i)
      ++requests_[i];
    edges_.emplace_back(nanoseconds(one.start_s), 1);
    edges_.emplace_back(nanoseconds(one.start_s + one.latency_s), -1);
  }

  void finish(serve_metrics& out) {
    out.peak_output_throughput = *std::max_element(tokens_.begin(), tokens_.end());
    out.peak_concurrent = *std::max_element(requests_.begin(), requests_.end());
    std::sort(edges_.begin(), edges_.end()); // at equal times, ends (-1) sort before starts (+1)
    std::ptrdiff_t now = 0, most = 0;
    for (const auto& [at, change] : edges_)
      most = std::max(most, now += change);
    out.peak_in_flight = static_cast<std::size_t>(most);
  }

private:
  /// Converts a time to whole nanoseconds. When one request starts at the moment at which another
  /// one ends, the end as a double, start_s + latency_s, could be rounded to a time after the
  /// start.
  static std::int64_t nanoseconds(double s) { return std::llround(s * 1e9); }

  std::size_t bucket(double at_s) const {
    const double index = std::max(0.0, at_s - first_s_);
    return std::min(static_cast<std::size_t>(index), tokens_.size() - 1);
  }

  double first_s_;
  std::vector<double> tokens_;        // one entry per second
  std::vector<std::size_t> requests_; // one entry per second
  std::vector<std::pair<std::int64_t, int>> edges_;
};

bool within_goodput(const record& one, double tpot_ms, const std::vector<name_value>& bounds) {
  return std::all_of(bounds.begin(), bounds.end(), [&](const name_value& bound) {
    const double limit_ms = std::strtod(bound.second.c_str(), nullptr);
    if (bound.first == "ttft") return one.ttft_s * 1e3 <= limit_ms;
    if (bound.first == "tpot") return tpot_ms <= limit_ms;
    return one.latency_s * 1e3 <= limit_ms;
  });
}

void count_outcome(const record& one, serve_metrics& out) {
  switch (one.how) {
  case outcome::unsent:
    ++out.unsent;
    break;
  case outcome::completed:
    ++out.completed;
    break;
  case outcome::cancelled:
    ++out.cancelled;
    break;
  case outcome::interrupted:
    ++out.interrupted;
    break;
  case outcome::failed:
    ++out.failed;
    ++out.error_kinds[one.error_kind];
    break;
  }
}

void count_lengths(const record& one, serve_metrics& out) {
  out.input_tokens += one.input_tokens;
  out.output_tokens += one.output_tokens;
  ++out.finish_reasons[one.finish_reason.empty() ? "unknown" : one.finish_reason];
  if (!one.from_usage) ++out.counted_lengths;
  if (one.input_tokens != one.asked_input_tokens) ++out.input_mismatches;
  if (one.output_tokens >= one.asked_output_tokens) return;
  ++out.short_outputs;
  if (one.finish_reason == "length")
    ++out.context_limited;
  else
    ++out.stopped_early;
}

struct samples {
  std::vector<double> ttft, tpot, itl, e2el, queue, ttft_with_queue, e2el_with_queue;
  double per_token = 0, per_output_token = 0;
};

void take_samples(const record& one, double tpot_ms, samples& into) {
  if (one.has_ttft) into.ttft.push_back(one.ttft_s * 1e3);
  if (one.has_ttft && one.output_tokens > 1) into.tpot.push_back(tpot_ms);
  for (const float gap : one.itl_s)
    into.itl.push_back(double(gap) * 1e3);
  into.e2el.push_back(one.latency_s * 1e3);
  const double queue_ms = std::max(0.0, one.start_s - one.due_s) * 1e3;
  into.queue.push_back(queue_ms);
  if (one.has_ttft) into.ttft_with_queue.push_back(queue_ms + one.ttft_s * 1e3);
  into.e2el_with_queue.push_back(queue_ms + one.latency_s * 1e3);
  into.per_token += one.latency_s * 1e3 / std::max(1, one.input_tokens + one.output_tokens);
  into.per_output_token += one.latency_s * 1e3 / std::max(1, one.output_tokens);
}

/// Counts completed requests, goodput and tokens within the measurement window (metrics.hpp), and
/// computes their rates per second of the window.
class window_rates {
public:
  /// When `whole` is true, everything counts, even what rounding puts after the end of the window.
  window_rates(double from_s, double to_s, bool whole)
      : from_s_(from_s), to_s_(to_s), whole_(whole) {}

  bool holds(double at_s) const { return whole_ || (at_s >= from_s_ && at_s < to_s_); }

  void add(const record& one, bool good) {
    if (holds(one.start_s)) input_ += one.input_tokens;
    const double weight = double(one.output_tokens) / double(one.itl_s.size() + 1);
    double at = one.start_s + (one.has_ttft ? one.ttft_s : one.latency_s);
    if (holds(at)) output_ += weight;
    for (const float gap : one.itl_s)
      if (holds(at += double(gap))) output_ += weight;
    if (!holds(one.start_s + one.latency_s)) return;
    ++completed_;
    good_ += good;
  }

  void finish(serve_metrics& out) const {
    const double length_s = to_s_ - from_s_;
    if (length_s <= 0) return;
    out.request_throughput = double(completed_) / length_s;
    out.request_goodput = double(good_) / length_s;
    out.output_throughput = output_ / length_s;
    out.total_throughput = (double(input_) + output_) / length_s;
  }

private:
  double from_s_, to_s_;
  bool whole_;
  std::size_t completed_ = 0, good_ = 0;
  std::int64_t input_ = 0;
  double output_ = 0;
};

double tpot_ms_of(const record& one) {
  if (!one.has_ttft || one.output_tokens <= 1) return 0.0;
  return (one.latency_s - one.ttft_s) * 1e3 / (one.output_tokens - 1);
}

void finish_samples(samples all, const serve_options& options, serve_metrics& out) {
  const auto& percents = options.metric_percentiles;
  out.ttft_ms = summarize(std::move(all.ttft), percents);
  out.tpot_ms = summarize(std::move(all.tpot), percents);
  out.itl_ms = summarize(std::move(all.itl), percents);
  out.e2el_ms = summarize(std::move(all.e2el), percents);
  const bool open_loop = is_open_loop(options);
  if (!open_loop) all.queue.assign(all.queue.size(), 0.0);
  out.queue_ms = summarize(std::move(all.queue), percents);
  out.ttft_with_queue_ms =
      open_loop ? summarize(std::move(all.ttft_with_queue), percents) : out.ttft_ms;
  out.e2el_with_queue_ms =
      open_loop ? summarize(std::move(all.e2el_with_queue), percents) : out.e2el_ms;
  const double completed = double(std::max<std::size_t>(1, out.completed));
  out.mean_ms_per_token = all.per_token / completed;
  out.mean_ms_per_output_token = all.per_output_token / completed;
}

} // namespace

serve_metrics compute_metrics(const run_outcome& run, const serve_options& options) {
  serve_metrics out;
  out.window_from_s = run.duration_s * options.warmup_percent / 100;
  out.window_to_s = run.duration_s * (1 - options.cooldown_percent / 100);
  const bool whole = options.warmup_percent <= 0 && options.cooldown_percent <= 0;
  const window_rates window(out.window_from_s, out.window_to_s, whole);
  window_rates rates = window;
  double first_s = run.duration_s, last_s = 0;
  for (const record& one : run.records) {
    if (one.how != outcome::completed || !window.holds(one.start_s)) continue;
    first_s = std::min(first_s, one.start_s);
    last_s = std::max(last_s, one.start_s + one.latency_s);
  }
  timeline when(first_s, last_s);
  samples all;
  for (const record& one : run.records) {
    const double tpot_ms = tpot_ms_of(one);
    if (one.how == outcome::completed)
      rates.add(one, within_goodput(one, tpot_ms, options.goodput_ms));
    if (one.how != outcome::unsent && !window.holds(one.start_s)) {
      ++out.outside_window;
      continue;
    }
    count_outcome(one, out);
    if (one.how != outcome::completed) continue;
    count_lengths(one, out);
    take_samples(one, tpot_ms, all);
    when.add(one);
  }
  when.finish(out);
  rates.finish(out);
  finish_samples(std::move(all), options, out);
  return out;
}

} // namespace twill::bench
