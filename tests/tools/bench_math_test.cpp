#include <cmath>
#include <limits>
#include <numeric>

#include "tests/catch.hpp"
#include "tools/twill-bench/engine/arrivals.hpp"
#include "tools/twill-bench/engine/metrics.hpp"
#include "tools/twill-bench/engine/stats.hpp"

using namespace twill::bench;

namespace {

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / double(values.size());
}

double variance_of(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values)
    squares += (value - mean) * (value - mean);
  return squares / double(values.size());
}

record finished(double start_s, double ttft_s, std::vector<float> gaps, int in, int out) {
  record one;
  one.how = outcome::completed;
  one.start_s = one.due_s = start_s;
  one.ttft_s = ttft_s;
  one.has_ttft = true;
  one.latency_s = ttft_s;
  for (const float gap : gaps)
    one.latency_s += double(gap);
  one.itl_s = std::move(gaps);
  one.asked_input_tokens = one.input_tokens = in;
  one.asked_output_tokens = one.output_tokens = out;
  one.from_usage = true;
  one.finish_reason = "length";
  return one;
}

} // namespace

TEST_CASE("percentiles equal numpy's linear interpolation") {
  const std::vector<double> values{7, 1, 3, 10, 2, 8, 4};
  // numpy.percentile([7, 1, 3, 10, 2, 8, 4], [0, 10, 25, 50, 90, 99, 100])
  CHECK(percentile(values, 0) == Approx(1.0));
  CHECK(percentile(values, 10) == Approx(1.6));
  CHECK(percentile(values, 25) == Approx(2.5));
  CHECK(percentile(values, 50) == Approx(4.0));
  CHECK(percentile(values, 90) == Approx(8.8));
  CHECK(percentile(values, 99) == Approx(9.88));
  CHECK(percentile(values, 100) == Approx(10.0));
  CHECK(percentile({}, 50) == 0);
  CHECK(percentile({5}, 99) == 5);
}

TEST_CASE("a summary has numpy's mean, median and population standard deviation") {
  const summary of = summarize({2, 4, 4, 4, 5, 5, 7, 9}, {25, 99});
  CHECK(of.mean == Approx(5.0));
  CHECK(of.median == Approx(4.5));
  CHECK(of.std == Approx(2.0));
  REQUIRE(of.percentiles.size() == 2);
  CHECK(of.percentiles[0] == Approx(4.0));
  CHECK(of.percentiles[1] == Approx(8.86));
}

TEST_CASE("arrival gaps have the mean of the rate and the variance of the burstiness") {
  constexpr std::size_t n = 200000;
  const double rate = 4;
  for (const double shape : {0.25, 1.0, 5.0}) {
    random_source random(42);
    const auto gaps = arrival_gaps_s(n, rate, shape, random);
    CHECK(mean_of(gaps) == Approx(1 / rate).epsilon(0.02));
    CHECK(variance_of(gaps) == Approx(1 / (rate * rate * shape)).epsilon(0.05));
  }
}

TEST_CASE("Poisson arrivals in windows have equal mean and variance") {
  random_source random(7);
  const auto due = arrival_times_s(100000, 10, 1.0, random);
  std::vector<double> per_window(static_cast<std::size_t>(due.back()) + 1);
  for (const double at : due)
    per_window[static_cast<std::size_t>(at)] += 1;
  per_window.pop_back();
  CHECK(mean_of(per_window) == Approx(10).epsilon(0.02));
  CHECK(variance_of(per_window) == Approx(10).epsilon(0.06));
}

TEST_CASE("arrival times rise, end at n over rate, and repeat with the seed") {
  random_source one(3), same(3), other(4);
  const auto due = arrival_times_s(500, 25, 1.0, one);
  CHECK(std::is_sorted(due.begin(), due.end()));
  CHECK(due.back() == Approx(20.0));
  CHECK(due == arrival_times_s(500, 25, 1.0, same));
  CHECK(due != arrival_times_s(500, 25, 1.0, other));
}

TEST_CASE("infinite burstiness makes constant gaps") {
  constexpr double inf = std::numeric_limits<double>::infinity();
  random_source random(1);
  const auto due = arrival_times_s(8, 4, inf, random);
  for (std::size_t i = 0; i < due.size(); ++i)
    CHECK(due[i] == Approx(0.25 * double(i + 1)));
}

TEST_CASE("an infinite rate makes every request due at once") {
  random_source random(1);
  const auto due = arrival_times_s(5, std::numeric_limits<double>::infinity(), 1.0, random);
  CHECK(due == std::vector<double>(5, 0.0));
}

TEST_CASE("metrics of known records have their closed form") {
  serve_options options;
  options.metric_percentiles = {50, 99};
  options.goodput_ms = {{"ttft", "150"}, {"tpot", "60"}};
  run_outcome run;
  run.duration_s = 2.0;
  run.records = {finished(0.0, 0.1, {0.05f, 0.05f, 0.05f}, 10, 4),
                 finished(0.5, 0.2, {0.1f}, 20, 3), // two tokens in its last chunk
                 finished(1.0, 0.3, {}, 30, 1)};
  run.records.emplace_back().how = outcome::failed;
  run.records.back().error_kind = "http_500";
  run.records.emplace_back().how = outcome::cancelled;

  const serve_metrics m = compute_metrics(run, options);
  CHECK(m.completed == 3);
  CHECK(m.failed == 1);
  CHECK(m.cancelled == 1);
  CHECK(m.error_kinds.at("http_500") == 1);
  CHECK(m.input_tokens == 60);
  CHECK(m.output_tokens == 8);
  CHECK(m.request_throughput == Approx(1.5));
  CHECK(m.output_throughput == Approx(4.0));
  CHECK(m.total_throughput == Approx(34.0));
  CHECK(m.request_goodput == Approx(0.5)); // only the first is in both bounds
  CHECK(m.ttft_ms.mean == Approx(200));
  // (250 - 100) / 3 = 50 and (300 - 200) / 2 = 50; the one-token request has no TPOT
  CHECK(m.tpot_ms.mean == Approx(50));
  CHECK(m.itl_ms.mean == Approx((50 * 3 + 100) / 4.0));
  CHECK(m.e2el_ms.mean == Approx((250 + 300 + 300) / 3.0));
  CHECK(m.mean_ms_per_token == Approx((250 / 14.0 + 300 / 23.0 + 300 / 31.0) / 3));
  CHECK(m.mean_ms_per_output_token == Approx((250 / 4.0 + 300 / 3.0 + 300 / 1.0) / 3));
  CHECK(m.peak_in_flight == 1);
  CHECK(m.peak_concurrent == 2);                      // by whole seconds
  CHECK(m.peak_output_throughput == Approx(4.0 + 3)); // the first two end within the first second
}

TEST_CASE("one request's peak figures come from its own second") {
  run_outcome run;
  run.duration_s = 3;
  run.records = {finished(0, 0.5, {1.0f, 1.0f}, 1, 3), finished(0, 0.5, {}, 1, 1)};
  const serve_metrics m = compute_metrics(run, {});
  CHECK(m.peak_output_throughput == Approx(2.0));
  CHECK(m.peak_concurrent == 2);
  CHECK(m.peak_in_flight == 2);
}

TEST_CASE("lengths that differ from those asked for are counted by cause") {
  run_outcome run;
  run.duration_s = 1;
  run.records = {finished(0, 0.1, {}, 5, 1), finished(0, 0.1, {}, 5, 1),
                 finished(0, 0.1, {}, 5, 1)};
  run.records[0].asked_output_tokens = 8;
  run.records[0].finish_reason = "stop";
  run.records[1].asked_output_tokens = 8;
  run.records[2].input_tokens = 9;
  const serve_metrics m = compute_metrics(run, {});
  CHECK(m.short_outputs == 2);
  CHECK(m.stopped_early == 1);
  CHECK(m.context_limited == 1);
  CHECK(m.input_mismatches == 1);
  CHECK(m.input_tokens == 19);
}

TEST_CASE("queue time is measured from the due time in an open loop only") {
  serve_options options;
  options.request_rate_per_s = 10;
  run_outcome run;
  run.duration_s = 1;
  run.records = {finished(0.5, 0.1, {}, 5, 1)};
  run.records[0].due_s = 0.2;
  CHECK(compute_metrics(run, options).queue_ms.mean == Approx(300));
  CHECK(compute_metrics(run, options).e2el_with_queue_ms.mean == Approx(400));
  CHECK(compute_metrics(run, options).ttft_with_queue_ms.mean == Approx(400));
  options.request_rate_per_s = std::numeric_limits<double>::infinity();
  CHECK(compute_metrics(run, options).queue_ms.mean == 0);
}

TEST_CASE("a run without a completed request has zeros, not NaN") {
  run_outcome run;
  run.records.resize(2);
  const serve_metrics m = compute_metrics(run, {});
  CHECK(m.unsent == 2);
  CHECK(m.ttft_ms.mean == 0);
  CHECK(m.request_throughput == 0);
  CHECK(m.mean_ms_per_token == 0);
}
