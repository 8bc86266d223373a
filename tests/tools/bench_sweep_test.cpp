// twill-bench sweep and compare: the grid, resuming, the tables and charts.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "tests/catch.hpp"
#include "tests/tools/bench_drive.hpp"
#include "tests/tools/bench_server.hpp"
#include "tools/twill-bench/engine/text.hpp"
#include "tools/twill-bench/report/buckets.hpp"
#include "tools/twill-bench/report/html.hpp"
#include "tools/twill-bench/report/serve_charts.hpp"
#include "tools/twill-bench/report/write_file.hpp"
#include "tools/twill-bench/runs/compare.hpp"
#include "tools/twill-bench/runs/load_runner.hpp"
#include "tools/twill-bench/runs/sweep_file.hpp"
#include "tools/twill-bench/runs/sweep_report.hpp"
#include "tools/twill-bench/runs/sweep_runner.hpp"
#include "tools/twill-bench/runs/time_left.hpp"

using namespace twill::bench;
using twill::tests::bench_server;
using twill::tests::options_for;
using twill::tests::script;

namespace {

/// A folder that is removed at the end of the test.
struct scratch {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("twill-bench-test-" + std::to_string(getpid()));
  scratch() { std::filesystem::create_directories(path); }
  ~scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

run_figures phase(double requests_per_s, double output_tokens) {
  run_figures out;
  out.asked = out.completed = 4;
  out.requests_per_s = requests_per_s;
  out.output_tokens = output_tokens;
  out.output_tokens_per_s = requests_per_s * output_tokens;
  out.ms_per_token = 6.125;
  out.ms_per_output_token = 12.25;
  out.duration_s = 2;
  return out;
}

sweep small_sweep() {
  sweep out;
  out.setup.backend = "openai";
  out.setup.model = "m";
  out.setup.title = "A <model> & more";
  out.setup.hardware = "two cores";
  out.setup.server = "twilld";
  out.setup.latency_requests = 2;
  out.setup.throughput_requests = 4;
  out.cells = sweep_grid({128, 512}, {128, 2048}, 2048);
  out.cells[0].latency = phase(1, 128);
  out.cells[0].throughput = phase(6.7749, 128);
  out.cells[2].latency = phase(0, 0);
  out.cells[2].latency->completed = 0;
  out.cells[2].latency->failed = 4;
  out.cells[2].latency->first_error = "http_500: no";
  return out;
}

sweep_order order_for(const bench_server& server, const scratch& folder) {
  sweep_order order;
  order.base = options_for(server, "openai");
  order.base.n_warmups = 1;
  order.input_lengths = {7};
  order.output_lengths = {4, 5000};
  order.state_path = (folder.path / "sweep.json").string();
  order.setup.backend = "openai";
  order.setup.latency_requests = 2;
  order.setup.throughput_requests = 6;
  return order;
}

sweep swept(const sweep_order& order) {
  load_runner runner(false);
  return run_sweep(order, runner);
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("a grid marks the cells beyond the context limit") {
  const auto cells = sweep_grid({128, 2048}, {128, 2048}, 4000);
  REQUIRE(cells.size() == 4);
  CHECK(cells[1].skipped.empty());
  CHECK(cells[3].skipped == "context limit 4000");
  CHECK(cells[3].done());
  CHECK(sweep_grid({2048}, {2048}, 0)[0].skipped.empty());
}

TEST_CASE("a sweep's file reads back as it was written") {
  const sweep before = small_sweep();
  const std::string text = sweep_json(before);
  CHECK(is_sweep(text));
  const sweep after = read_sweep(text, "x");
  CHECK(sweep_json(after) == text);
  CHECK(after.cells[0].throughput->requests_per_s == Approx(6.7749));
  CHECK(after.cells[2].latency->first_error == "http_500: no");
  CHECK_FALSE(after.cells[2].throughput);
  CHECK_FALSE(is_sweep("{}"));
  CHECK_THROWS_AS(read_sweep("{}", "x"), std::runtime_error);
  CHECK_THROWS_AS(read_sweep(text.substr(0, text.size() / 2), "x"), std::runtime_error);
  sweep_setup other = before.setup;
  CHECK(setup_conflict(before.setup, other).empty());
  other.title = "another";
  CHECK(setup_conflict(before.setup, other).empty());
  other.seed = 3;
  CHECK(setup_conflict(before.setup, other) == "seed is 0 in the results and 3 in this order");
}

TEST_CASE("a sweep measures both phases of each cell and resumes where it stopped") {
  const scratch folder;
  bench_server server([](int i) {
    script s;
    s.status = i < 2 ? 500 : 200; // the warm-up and the first request of the first phase
    s.first_ms = 2;
    return s;
  });
  sweep_order order = order_for(server, folder);
  const sweep first = swept(order);
  REQUIRE(first.cells.size() == 2);
  CHECK(first.setup.model == "scripted");
  CHECK(first.setup.context_limit == 4096);
  CHECK(first.cells[1].skipped == "context limit 4096");
  const sweep_cell& cell = first.cells[0];
  REQUIRE(cell.latency);
  REQUIRE(cell.throughput);
  CHECK(cell.latency->completed == 1);
  CHECK(cell.latency->failed == 1);
  CHECK(has(cell.latency->first_error, "http_500"));
  CHECK(cell.latency->concurrency == 1);
  CHECK(cell.throughput->completed == 6);
  CHECK(cell.throughput->output_tokens == 4);
  CHECK(cell.throughput->concurrency >= 4);
  CHECK(server.counts().requests == 1 + 2 + 6);

  order.output_lengths = {4, 8}; // one more cell: only that is measured
  const sweep second = swept(order);
  REQUIRE(second.cells.size() == 3);
  CHECK(second.cells[0].latency->failed == 1);
  CHECK(second.cells[1].throughput->completed == 6);
  CHECK(second.cells[1].throughput->context_limited == 6); // the script sends four tokens
  CHECK(server.counts().requests == 9 + 1 + 2 + 6);

  order.base.seed = order.setup.seed = 1;
  CHECK_THROWS_AS(swept(order), std::runtime_error);
  order.fresh = true;
  CHECK(swept(order).cells.size() == 2);
  std::vector<std::string> bodies = server.bodies();
  std::sort(bodies.begin(), bodies.end());
  CHECK(std::adjacent_find(bodies.begin(), bodies.end()) == bodies.end()); // no prompt twice
}

TEST_CASE("a phase in which nothing succeeded is measured again") {
  const scratch folder;
  bench_server server([](int i) {
    script s;
    s.status = i < 8 ? 503 : 200;
    return s;
  });
  sweep_order order = order_for(server, folder);
  order.base.n_warmups = 0;
  order.output_lengths = {4};
  CHECK(swept(order).cells[0].throughput->completed == 0);
  const sweep again = swept(order);
  CHECK(again.cells[0].latency->completed == 2);
  CHECK(again.cells[0].throughput->completed == 6);
}

TEST_CASE("the Markdown table has the published columns, and says what is missing") {
  const std::string text = sweep_markdown(small_sweep(), "svg");
  CHECK(has(text, "| Input Length | Output Length | Throughput (requests/s) | Throughput (output "
                  "token/s) | Average latency per token (ms) | Average latency per output token "
                  "(ms) |"));
  CHECK(has(text, "| 128 | 128 | 6.77 | 867.19 | 6.12 | 12.25 |"));
  CHECK(has(text, "| 128 | 2048 | skipped | skipped | skipped | skipped |"));
  CHECK(has(text, "| 512 | 128 | not run | not run | failed | failed |"));
  CHECK(has(text, "Skipped: context limit 2048"));
  CHECK(has(text, "http_500: no"));
  CHECK(has(text, "## two cores"));
  sweep busy = small_sweep();
  busy.cells[0].throughput->client_cpu_share = 0.9;
  CHECK(has(sweep_markdown(busy, "svg"), "The client was busy")); // although a phase failed
  const std::string csv = sweep_csv(small_sweep());
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 4);
  CHECK(has(csv, "128,128,throughput,4,4,0,0,0,0,2.0000,0.0000,128.0000,6.7749,"));
}

TEST_CASE("charts break at missing values and escape their texts") {
  const auto charts = sweep_charts(small_sweep());
  REQUIRE(charts.size() == 4);
  CHECK(charts[0].first == "throughput-req");
  const chart& one = charts[0].second;
  REQUIRE(one.series.size() == 2);
  CHECK(one.places == std::vector<std::string>{"128", "2048"});
  CHECK(*one.series[0].values[0] == Approx(6.7749));
  CHECK_FALSE(one.series[0].values[1]);
  const std::string svg = svg_chart(one);
  CHECK(has(svg, ">A &lt;model&gt; &amp; more: Throughput<"));
  CHECK(has(svg, ">requests/s<"));
  CHECK_FALSE(has(svg, "nan"));
  CHECK(has(svg, "</svg>"));
  CHECK(has(svg_chart({}), "</svg>"));
}

TEST_CASE("a page holds the tables and charts of its run, and nothing from outside") {
  const std::string text = sweep_page(small_sweep());
  std::size_t charts = 0;
  for (std::size_t at = text.find("<svg"); at != std::string::npos; at = text.find("<svg", at + 1))
    ++charts;
  CHECK(charts == 4);
  CHECK(has(text, "<title>A &lt;model&gt; &amp; more</title>"));
  // The model's name is in the page's heading, and no chart's title repeats it.
  CHECK(has(text, "\"title\":\"Throughput (requests/s)\""));
  CHECK(has(text, "\"title\":\"Average latency per output token (ms)\""));
  CHECK_FALSE(has(text, "more: Throughput"));
  for (const sweep_metric& metric : sweep_metrics())
    CHECK(metric.heading == std::string(metric.name) + " (" + metric.unit + ")");
  // The page includes the daemon's chart module, so it needs no other file.
  CHECK(has(text, "export class LineChart"));
  CHECK(has(text, "--series-1"));
  CHECK_FALSE(has(text, "src="));
  CHECK_FALSE(has(text, "href="));
}

namespace {

/// A run with a rising rate of requests, in which later requests take longer.
run_outcome rising_run(std::size_t n) {
  run_outcome run;
  run.duration_s = 20;
  for (std::size_t i = 0; i < n; ++i) {
    record one;
    one.how = outcome::completed;
    one.start_s = 18 * std::sqrt(double(i) / double(n));
    one.has_ttft = true;
    one.ttft_s = 0.010 + 0.001 * double(i);
    one.itl_s = {0.020f, 0.021f, 0.300f};
    one.latency_s = one.ttft_s + 0.341;
    one.output_tokens = 4;
    run.records.push_back(one);
  }
  return run;
}

double sum_of(const chart& of) {
  double all = 0;
  for (const auto& value : of.series.at(0).values)
    all += value.value_or(0);
  return all;
}

} // namespace

TEST_CASE("a page of a run shows how its times are spread and follow the load") {
  run_outcome run = rising_run(400);
  record lost;
  lost.how = outcome::failed;
  run.records.push_back(lost);
  const serve_options options;
  const serve_metrics m = compute_metrics(run, options);
  const report_input in{options, run, m, "20260101-000000", {}};

  const auto spread = distribution_charts(in);
  REQUIRE(spread.size() == 3);
  for (const chart& one : spread) {
    CHECK(one.bars);
    CHECK(one.places.size() == one.series.at(0).values.size());
    CHECK(one.places.size() >= 4);
    CHECK(one.places.size() <= 60);
  }
  CHECK(sum_of(spread[0]) == 400); // each request and each gap once, the failed one never
  CHECK(sum_of(spread[1]) == 1200);
  CHECK(sum_of(spread[2]) == 400);
  CHECK(has(spread[0].now, "median " + fixed(m.ttft_ms.median, 1)));

  const auto load = load_charts(in);
  REQUIRE(load.size() == 4);
  CHECK(load[0].title == "TTFT against the rate of requests");
  for (const chart& one : load) {
    REQUIRE(one.series.size() == 2);
    CHECK(one.places.size() > 1);
    for (std::size_t i = 0; i < one.places.size(); ++i)
      CHECK(*one.series[0].values[i] <= *one.series[1].values[i]);
  }
  // In rising_run(), later requests come at a higher rate and take longer.
  CHECK(*load[0].series[0].values.front() < *load[0].series[0].values.back());

  const std::string page = serve_page(in, {"a <remark>"}, {});
  CHECK(has(page, "a &lt;remark&gt;"));
  CHECK(has(page, "How the times are spread"));
  CHECK(has(page, "Latency against the load"));
  CHECK_FALSE(has(page, "The server's metrics"));
}

TEST_CASE("a page of a run without any reply has no charts of latencies") {
  run_outcome run;
  run.duration_s = 1;
  const serve_options options;
  const serve_metrics m = compute_metrics(run, options);
  const report_input in{options, run, m, "20260101-000000", {}};
  CHECK(distribution_charts(in).empty());
  CHECK(load_charts(in).empty());
  CHECK(has(serve_page(in, {}, {}), "</html>"));
}

TEST_CASE("a run over time has a place for each second") {
  run_outcome run;
  run.duration_s = 2.5;
  record one;
  one.how = outcome::completed;
  one.has_ttft = true;
  one.ttft_s = 0.5;
  one.itl_s = {1.0f};
  one.latency_s = 1.5;
  one.output_tokens = 4;
  run.records = {one};
  const serve_options options;
  const serve_metrics m = compute_metrics(run, options);
  const report_input in{options, run, m, "20260101-000000", {}};
  const auto drawn = time_charts(in);
  REQUIRE(drawn.size() == 3);
  REQUIRE(drawn[0].places.size() == 3);
  CHECK(*drawn[0].series[0].values[0] == Approx(2));
  CHECK(*drawn[0].series[0].values[1] == Approx(2));
  CHECK(*drawn[1].series[0].values[0] == Approx(500));
  CHECK_FALSE(drawn[2].series[0].values[2]);
}

TEST_CASE("buckets hold every value once, in ranges with names of their own") {
  for (const auto& [low, high] :
       {std::pair(0.0, 0.0), std::pair(3.0, 3.0), std::pair(24.0, 26.0), std::pair(0.0, 1.0),
        std::pair(0.02, 900.0), std::pair(0.0, 5e4), std::pair(1e-9, 2e-9), std::pair(7.0, 1e9)})
    for (const std::size_t n : {std::size_t{1}, std::size_t{2}, std::size_t{1000}}) {
      CAPTURE(low, high, n);
      std::vector<double> values;
      for (std::size_t i = 0; i < n; ++i)
        values.push_back(low + (high - low) * std::pow(double(i) / double(n), 3));
      const buckets ranges = buckets_for(values, 20);
      REQUIRE_FALSE(ranges.bounds.empty());
      CHECK(ranges.bounds.size() <= 60);
      CHECK(std::is_sorted(ranges.bounds.begin(), ranges.bounds.end()));
      for (const double value : values) {
        const std::size_t at = ranges.of(value);
        REQUIRE(at < ranges.bounds.size());
        if (at + 1 < ranges.bounds.size()) CHECK(value < ranges.bounds[at + 1]);
        if (at > 0) CHECK(value >= ranges.bounds[at]);
      }
      if (high < 1e-6) continue; // finer than anything that is measured
      const auto names = ranges.names();
      CHECK(std::set<std::string>(names.begin(), names.end()).size() == names.size());
    }
  CHECK(buckets_for({}, 20).bounds.empty());
}

TEST_CASE("the time left is that of the phases not measured yet") {
  sweep of;
  of.setup.latency_requests = 1;
  of.setup.throughput_requests = 10;
  of.cells = sweep_grid({0}, {100, 200}, 0);
  CHECK(seconds_left(of, of.cells[0], false) == 0);
  of.cells[0].latency = phase(1, 100);
  of.cells[0].latency->duration_s = 5;
  // 200 tokens take 10 s at 20/s, as measured; 2000 tokens of throughput are guessed at that speed.
  CHECK(seconds_left(of, of.cells[0], true) == Approx(10 + 100));
  of.cells[0].throughput = phase(1, 100);
  of.cells[0].throughput->duration_s = 10;
  CHECK(seconds_left(of, of.cells[1], false) == Approx(20));
}

TEST_CASE("sweeps side by side have ratios, but none of requests that differ in length") {
  named_sweep a{"a", small_sweep()}, b{"b", small_sweep()};
  b.figures.cells[0].throughput = phase(13.5498, 128);
  std::string text = compare_sweeps({a, b}, {reference_sweep("baichuan2-13b-gptq")});
  CHECK(has(text, "| 128 | 128 | 6.77 | 13.55 | 2.00 | 6.77 |\n")); // the reference is last
  CHECK(has(text, "Baichuan2-13B GPTQ, vLLM 0.2.7, A100 40G"));
  CHECK_FALSE(has(text, "WARNING"));
  b.figures.cells[0].throughput = phase(13.5498, 100);
  b.figures.setup.throughput_requests = 64;
  text = compare_sweeps({a, b}, {});
  CHECK(has(text, "| 128 | 128 | 6.77 | 13.55 | lengths differ |"));
  CHECK(has(text, "WARNING: b had another throughput load"));
  CHECK(has(text, "\"lengths differ\": the mean actual output lengths"));
  b.figures.cells[0].throughput->completed = 0;
  b.figures.cells[0].throughput->output_tokens = 0;
  text = compare_sweeps({a, b}, {});
  CHECK(has(text, "| 128 | 128 | 6.77 | failed | |\n"));
  CHECK(has(text, "| 128 | 2048 | skipped | skipped | |\n"));
  CHECK(has(text, "| 512 | 128 | not run | not run | |\n"));
  CHECK_FALSE(has(text, "lengths differ"));
  CHECK(compare_charts({a, b})[0].second.places.size() == 4);
  for (const std::string& name : reference_names())
    CHECK(reference_sweep(name).figures.cells.size() >= 15);
}

TEST_CASE("results of serve compare key by key") {
  const std::string a = R"({"request_throughput":2,"mean_ttft_ms":10,"date":"x","failed":0})";
  const std::string b = R"({"request_throughput":5,"mean_ttft_ms":8})";
  const std::string text = compare_serves({{"a", a}, {"b", b}});
  CHECK(has(text, "| request_throughput | 2.00 | 5.00 | 2.50 |"));
  CHECK(has(text, "| mean_ttft_ms | 10.00 | 8.00 | 0.80 |"));
  CHECK(has(text, "| failed | 0.00 | | |"));
  CHECK_THROWS_AS(compare_serves({{"a", "{}"}}), std::runtime_error);
}

TEST_CASE("a result file is replaced whole, and a folder in its place is an error") {
  const scratch folder;
  const std::string path = (folder.path / "deep" / "x.json").string();
  write_file(path, "one");
  write_file(path, "two");
  CHECK(read_file(path) == "two");
  CHECK_FALSE(std::filesystem::exists(path + ".new"));
  CHECK_THROWS_AS(write_file((folder.path / "deep").string(), "x"), std::runtime_error);
  CHECK_THROWS_AS(read_file(path + "none"), std::runtime_error);
  if (std::filesystem::exists("/dev/full")) {
    std::filesystem::create_symlink("/dev/full", path + ".new");
    CHECK_THROWS_AS(write_file(path, "three"), std::runtime_error);
    CHECK(read_file(path) == "two");
  }
}

TEST_CASE("durations are written in words") {
  CHECK(duration_text(45.4) == "45 s");
  CHECK(duration_text(720) == "12 min");
  CHECK(duration_text(11100) == "3 h 05 min");
}
