// What twill-bench sends and when (lengths, prefixes, conversations, traces, ramps), and when it
// ends (duration, grace, over-saturation). No sockets are used unless a test says so.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include "tests/catch.hpp"
#include "tests/tools/bench_drive.hpp"
#include "tests/tools/bench_server.hpp"
#include "tools/twill-bench/engine/arrivals.hpp"
#include "tools/twill-bench/engine/json_scan.hpp"
#include "tools/twill-bench/engine/lengths.hpp"
#include "tools/twill-bench/engine/repeats.hpp"
#include "tools/twill-bench/engine/run_guard.hpp"
#include "tools/twill-bench/engine/saturation.hpp"
#include "tools/twill-bench/engine/scraper.hpp"
#include "tools/twill-bench/engine/workload.hpp"
#include "tools/twill-bench/report/html.hpp"
#include "tools/twill-bench/report/server_charts.hpp"
#include "tools/twill-bench/report/write_file.hpp"

using namespace twill::bench;
using twill::tests::bench_server;
using twill::tests::made_up_options;
using twill::tests::options_for;
using twill::tests::prompts;
using twill::tests::run;
using twill::tests::run_on_made_up_time;
using twill::tests::script;
namespace js = twill::bench::json_scan;

namespace {

/// A server without a tokenizer, for workloads in ids.
class no_tokens final : public token_service {
  std::optional<std::vector<std::int32_t>> tokenize(const std::string&) override { return {}; }
  std::optional<std::string> detokenize(const std::vector<std::int32_t>&) override { return {}; }
};

workload in_ids(const serve_options& options, std::size_t n,
                std::optional<std::int64_t> context = {}) {
  no_tokens tokens;
  model_facts model;
  model.max_model_len = context;
  return make_workload({options, true, model, tokens, [] { return false; }}, n, measured_prompts);
}

script at_once(int) {
  return {};
}

} // namespace

TEST_CASE("lognormal lengths have the mean and the variation asked for") {
  random_source random(3);
  constexpr int n = 100000;
  double sum = 0, squares = 0;
  for (int i = 0; i < n; ++i) {
    const double one = draw_length(random, 500, {0, 0.8});
    sum += one;
    squares += one * one;
  }
  const double mean = sum / n, deviation = std::sqrt(squares / n - mean * mean);
  CHECK(mean == Approx(500).epsilon(0.02));
  CHECK(deviation / mean == Approx(0.8).epsilon(0.04));
  serve_options options;
  options.length_cv = 2;
  options.input_tokens = options.output_tokens = 300;
  const workload cut = in_ids(options, 200, 512);
  for (const prompt& one : cut.prompts)
    CHECK(one.input_tokens + one.output_tokens <= 512);
  REQUIRE(cut.remarks.size() == 1);
  CHECK(cut.remarks[0].find("cut to the context limit") != std::string::npos);
}

TEST_CASE("prompts share as many prefixes as asked for, and nothing else") {
  serve_options options;
  options.input_tokens = 20;
  options.prefix_tokens = 30;
  options.n_prefixes = 3;
  const workload load = in_ids(options, 60);
  std::map<std::vector<std::int32_t>, int> prefixes;
  std::set<std::vector<std::int32_t>> rests;
  for (const prompt& one : load.prompts) {
    REQUIRE(one.ids.size() == 50);
    CHECK(one.input_tokens == 50);
    ++prefixes[{one.ids.begin(), one.ids.begin() + 30}];
    rests.insert({one.ids.begin() + 30, one.ids.end()});
  }
  CHECK(prefixes.size() == 3);
  CHECK(rests.size() == 60);
}

TEST_CASE("turns wait for their answers and carry all that was said") {
  const std::string backend = GENERATE("openai-chat", "twill-stream", "llama.cpp", "tgi");
  CAPTURE(backend);
  bench_server server([](int) {
    script s;
    s.n_chunks = 3;
    return s;
  });
  serve_options options = options_for(server, backend);
  options.n_turns = 3;
  options.max_concurrency = 1;
  options.save_detailed = false;
  std::vector<prompt> turns = prompts(4, 3);
  for (prompt& one : turns)
    if (backend == "openai-chat" || backend == "tgi") one.ids.clear();
  turns[1].follows = turns[2].follows = true; // turns[3] begins a conversation
  const run_outcome result = run(options, turns);
  CHECK(compute_metrics(result, options).completed == 4);
  const auto bodies = server.bodies();
  REQUIRE(bodies.size() == 4);
  if (backend == "openai-chat") {
    const std::string_view messages = js::member(bodies[2], "messages");
    REQUIRE(js::length(messages) == 5);
    CHECK(js::element(messages, 0) == R"({"role":"user","content":"seven!!"})");
    CHECK(js::element(messages, 3) == R"({"role":"assistant","content":"ababab"})");
    CHECK(js::length(js::member(bodies[3], "messages")) == 1);
  } else if (backend == "tgi") {
    CHECK(js::member(bodies[2], "inputs") == R"("seven!!abababseven!!abababseven!!")");
  } else {
    const char* key = backend == "twill-stream" ? "tokens" : "prompt";
    const auto third = js::integers(js::member(bodies[2], key));
    // each turn: a prompt of 7 ids, then an answer of three chunks, each with the id 100
    REQUIRE(third.size() == 7 + 3 + 7 + 3 + 7);
    CHECK(third[7] == 100);
    CHECK(third[10] == 1);
    CHECK(result.records[2].asked_input_tokens == 27);
    CHECK(js::integers(js::member(bodies[3], key)).size() == 7);
  }
}

TEST_CASE("a conversation ends with its first failure, and pauses are in no figure") {
  serve_options options = made_up_options("openai");
  options.n_turns = 4;
  options.request_rate_per_s = 10;
  options.turn_pause = std::chrono::milliseconds(500);
  std::vector<prompt> turns = prompts(4, 1);
  for (std::size_t i = 1; i < turns.size(); ++i)
    turns[i].follows = true;
  const run_outcome result = run_on_made_up_time(options, turns, [](int i) {
    script s;
    s.first_ms = 100;
    s.n_chunks = 1;
    if (i == 2) s.status = 500;
    return s;
  });
  const serve_metrics m = compute_metrics(result, options);
  CHECK(m.completed == 2);
  CHECK(m.failed == 1);
  CHECK(m.unsent == 1);
  CHECK(result.records[2].start_s == Approx(1.2));
  CHECK(m.queue_ms.mean == 0);
  CHECK(m.e2el_ms.mean == Approx(100));
}

TEST_CASE("a recorded trace gives times, lengths and shared blocks") {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("twill-bench-trace-" + std::to_string(getpid())))
          .string();
  write_file(
      path, R"({"timestamp": 1000, "input_length": 1200, "output_length": 7, "hash_ids": [4, 9, 11]}
{"timestamp": 1500.5, "input_length": 600, "output_length": 3, "hash_ids": [4, 12]}

{"timestamp": 1250, "input_length": 10, "output_length": 2}
)");
  serve_options options;
  options.dataset = "trace";
  options.dataset_path = path;
  options.trace_speed = 0.5;
  CHECK(is_open_loop(options));
  const workload load = in_ids(options, 100);
  REQUIRE(load.prompts.size() == 3);
  CHECK(load.due_s[0] == 0);
  CHECK(load.due_s[1] == Approx(0.5));
  CHECK(load.due_s[2] == Approx(1.001));
  const auto& first = load.prompts[0].ids;
  const auto& last = load.prompts[2].ids;
  REQUIRE(first.size() == 1200);
  REQUIRE(last.size() == 600);
  CHECK(std::equal(first.begin(), first.begin() + 512, last.begin()));
  CHECK_FALSE(std::equal(first.begin() + 512, first.begin() + 520, last.begin() + 512));
  CHECK(load.prompts[1].output_tokens == 2);
  CHECK(in_ids(options, 2).prompts.size() == 2);
  write_file(path, "{\"timestamp\": 1}\n");
  CHECK_THROWS_AS(in_ids(options, 2), std::runtime_error);
  std::filesystem::remove(path);
  CHECK_THROWS_AS(in_ids(options, 2), std::runtime_error);
}

TEST_CASE("a ramp's gaps shrink from the first rate to the last") {
  random_source random(1);
  constexpr double constant = std::numeric_limits<double>::infinity();
  const auto linear = ramp_times_s(100, {10, 20, false}, constant, random);
  CHECK(linear[0] == Approx(0.1));
  CHECK(linear[50] - linear[49] == Approx(1.0 / 15));
  const auto steep = ramp_times_s(100, {1, 100, true}, constant, random);
  CHECK(steep[50] - steep[49] == Approx(0.1));
  CHECK(std::is_sorted(steep.begin(), steep.end()));
}

TEST_CASE("the warm-up and the cool-down are in no figure") {
  // One request a second arrives for 20 s. Each has 5 tokens and takes 0.5 s, except that the first
  // five, which are slow, take 0.9 s. The first 25 % and the last 10 % of the time are excluded.
  serve_options options = made_up_options("openai");
  options.warmup_percent = 25;
  options.cooldown_percent = 10;
  options.request_rate_per_s = 1;
  std::vector<double> due_s;
  for (int i = 0; i < 20; ++i)
    due_s.push_back(i);
  const run_outcome result = run_on_made_up_time(
      options, prompts(20, 5),
      [](int i) {
        script s;
        s.first_ms = i < 5 ? 900 : 100; // slow while it is cold
        s.gap_ms = i < 5 ? 0 : 100;
        s.n_chunks = 5;
        return s;
      },
      due_s);
  const serve_metrics m = compute_metrics(result, options);
  const double from = 19.5 * 0.25, to = 19.5 * 0.9; // 4.875 and 17.55
  CHECK(m.window_from_s == Approx(from));
  CHECK(m.window_to_s == Approx(to));
  CHECK(m.completed == 13); // sent at 5 to 17 s
  CHECK(m.outside_window == 7);
  CHECK(m.ttft_ms.mean == Approx(100));
  // Throughputs count ends within the window: these 13, and the one sent at 4 s with its tokens.
  CHECK(m.request_throughput == Approx(14 / (to - from)));
  CHECK(m.output_throughput == Approx(70 / (to - from)));
  CHECK(m.total_throughput == Approx((70 + 13 * 7) / (to - from)));
}

TEST_CASE("an open loop that rises without end is over-saturated, a busy one is not") {
  saturation_watch rising, steady, burst;
  random_source random(5);
  for (int t = 0; t < 60; ++t) {
    const double noise = random.normal();
    rising.add({double(t), 5 + 2.0 * t + noise, 0.1 + 0.02 * t});
    steady.add({double(t), 50 + 5 * noise, 0.5 + 0.05 * random.normal()});
    burst.add({double(t), t < 10 ? 5.0 * t : 20 - 0.2 * t, 0.2 + 0.01 * random.normal()});
  }
  CHECK(rising.over());
  CHECK_FALSE(steady.over());
  CHECK_FALSE(burst.over());
  CHECK_FALSE(saturation_watch{}.over());
}

TEST_CASE("a run ends by its duration, then by its grace, or when it can't be followed") {
  serve_options options;
  options.duration_limit = std::chrono::seconds(10);
  options.grace = std::chrono::seconds(5);
  const std::vector<double> due_s(1000, 0.0);
  progress_counts counts;
  run_guard by_time(options, due_s);
  CHECK(by_time.ask(9.9, counts) == run_guard::order::go_on);
  CHECK(by_time.reason().empty());
  CHECK(by_time.ask(10, counts) == run_guard::order::close);
  CHECK(by_time.ask(15, counts) == run_guard::order::stop);
  CHECK(by_time.reason() == "after 10.0 s, as asked");

  serve_options open;
  open.stop_over_saturation = true;
  std::vector<double> rate;
  for (int i = 0; i < 10000; ++i)
    rate.push_back(0.01 * i); // 100 are due a second, and the server ends 40
  run_guard by_load(open, rate);
  auto last = run_guard::order::go_on;
  int ended_after_s = 0;
  for (int t = 1; t < 60 && last == run_guard::order::go_on; ++t) {
    counts.ended = std::size_t(40 * t);
    counts.ttfts = 40 * t;
    counts.ttft_us = counts.ttft_us + std::int64_t(40) * t * 20'000;
    last = by_load.ask(t, counts);
    ended_after_s = t;
  }
  CHECK(last == run_guard::order::stop);
  CHECK(ended_after_s >= 20);
  CHECK(by_load.reason().find("over-saturated") != std::string::npos);
}

TEST_CASE("a closed intake lets what runs come to its end") {
  bench_server server([](int i) {
    script s;
    s.first_ms = i < 3 ? 50 : 600'000;
    return s;
  });
  serve_options options = options_for(server, "openai");
  const auto dialect = make_protocol(options);
  engine driver(options, *dialect);
  progress_counts counts;
  std::thread closer([&] {
    for (int turn = 0; turn < 2000 && counts.sent < 3; ++turn)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    driver.close_intake();
  });
  std::vector<double> due_s(10, 3600.0);
  std::fill(due_s.begin(), due_s.begin() + 3, 0.0);
  const run_outcome result = driver.run(prompts(10, 4), due_s, 0, counts);
  closer.join();
  const serve_metrics m = compute_metrics(result, options);
  CHECK(m.completed == 3);
  CHECK(m.unsent == 7);
  CHECK_FALSE(result.interrupted);
}

TEST_CASE("a request taken back keeps its WebSocket, a disconnected one does not") {
  const bool abrupt = GENERATE(false, true);
  CAPTURE(abrupt);
  bench_server server([](int) {
    script s;
    s.gap_ms = 1;
    s.n_chunks = 20;
    return s;
  });
  serve_options options = options_for(server, "twill-stream");
  options.max_concurrency = 1;
  (abrupt ? options.disconnect_percent : options.cancellation_percent) = 100;
  const run_outcome result = run(options, prompts(10, 20));
  CHECK(compute_metrics(result, options).cancelled == 10);
  CHECK(server.counts().connections == (abrupt ? 10 : 1));
  options.connections = 1;
  if (abrupt) CHECK_THROWS_AS(make_protocol(options), std::invalid_argument);
}

TEST_CASE("repeats have a mean and Student's interval") {
  std::vector<serve_metrics> runs(3);
  for (std::size_t i = 0; i < 3; ++i)
    runs[i].output_throughput = 100 + 10.0 * double(i);
  const auto all = over_repeats(runs);
  const auto found = std::find_if(all.begin(), all.end(),
                                  [](const auto& f) { return f.name == "output_throughput"; });
  REQUIRE(found != all.end());
  CHECK(found->mean == Approx(110));
  CHECK(found->half_width == Approx(4.303 * 10 / std::sqrt(3.0)));
  CHECK(found->values.size() == 3);
  CHECK(repeats_table(all).find("110.00 +- 24.84") != std::string::npos);
  CHECK(student_t_975(100) == Approx(2.0));
}

TEST_CASE("a server's metrics become series, and those that changed become charts") {
  scrape_log log;
  const std::string first = "# HELP a_total x\n# TYPE a_total counter\na_total{model=\"m {1}\"} 5\n"
                            "# TYPE q gauge\nq 3\n# TYPE t histogram\nt_bucket{le=\"1\"} 2\n"
                            "t_sum 1.5\nt_count 2\nstill 1\nbad NaN\nnonsense\n";
  read_exposition(first, 0, log);
  read_exposition("# TYPE a_total counter\na_total{model=\"m {1}\"} 25\n# TYPE q gauge\nq 7 123\n"
                  "# TYPE t histogram\nt_sum 2.5\nt_count 2\nstill 1\n",
                  2, log);
  CHECK(log.count("t_bucket{le=\"1\"}") == 0);
  CHECK(log.count("bad") == 0);
  CHECK(log.at("a_total{model=\"m {1}\"}").counter);
  CHECK_FALSE(log.at("q").counter);
  CHECK(log.at("q").points.back() == std::pair(2.0, 7.0));
  // t_sum grew, but nothing was observed: there is no mean to draw.
  const auto charts = server_charts(log);
  CHECK(charts.known.empty());
  REQUIRE(charts.others.size() == 3);
  CHECK(charts.others[0].title == "a_total");
  CHECK_FALSE(charts.others[0].series[0].values[0]);
  CHECK(*charts.others[0].series[0].values[1] == Approx(10)); // per second
  CHECK(*charts.others[1].series[0].values[1] == Approx(7));
  CHECK(charts.others[2].title == "t");
  CHECK_FALSE(charts.others[2].series[0].values[1]);
}

TEST_CASE("what readers look for in a server's metrics comes first, and histograms as means") {
  for (const std::string prefix : {"twill_", "vllm:"}) {
    scrape_log log;
    for (int at = 0; at <= 10; ++at) {
      const std::string n = std::to_string(at);
      std::string text;
      for (const char* model : {"a", "</script>"}) {
        const std::string labels = std::string("{model_name=\"") + model + "\"} ";
        text += "# TYPE " + prefix + "num_requests_running gauge\n" + prefix +
                "num_requests_running" + labels + n + "\n";
      }
      const auto line = [&](const std::string& name, const std::string& value) {
        text += prefix + name + " " + value + "\n";
      };
      text += "# TYPE " + prefix + "generation_tokens_total counter\n";
      line("generation_tokens_total", std::to_string(100 * at));
      text += "# TYPE " + prefix + "time_to_first_token_seconds histogram\n";
      line("time_to_first_token_seconds_sum", std::to_string(0.5 * at));
      line("time_to_first_token_seconds_count", std::to_string(2 * at));
      line("kv_cache_usage_perc", std::to_string(0.05 * at));
      line("something_else", n);
      read_exposition(text, at, log);
    }
    const auto charts = server_charts(log);
    REQUIRE(charts.known.size() == 4);
    CHECK(charts.known[0].title == "Requests");
    REQUIRE(charts.known[0].series.size() == 2); // one for each model
    CHECK(charts.known[0].series[0].name != charts.known[0].series[1].name);
    CHECK(*charts.known[1].series[0].values[5] == Approx(100));
    CHECK(*charts.known[2].series[0].values[5] == Approx(25)); // per cent
    CHECK(charts.known[1].title == "Tokens, generated");
    CHECK(charts.known[3].title == "Latency at the server, mean, to the first token");
    CHECK(*charts.known[3].series[0].values[5] == Approx(250)); // milliseconds
    REQUIRE(charts.others.size() == 1);
    CHECK(charts.others[0].title == prefix + "something_else");
    // A label of the server must not end the page's script element.
    const run_outcome run;
    const serve_options options;
    const serve_metrics m = compute_metrics(run, options);
    const std::string page = serve_page({options, run, m, "", {}}, {}, log);
    CHECK(page.find("</script>\"") == std::string::npos);
    CHECK(page.find("\\u003c/script\\u003e") != std::string::npos);
    CHECK(page.find("Other metrics that changed (1)") != std::string::npos);
  }
}

TEST_CASE("the same seed draws the same cancellations on made-up time") {
  serve_options options = made_up_options("openai");
  options.cancellation_percent = 30;
  options.disconnect_percent = 20;
  options.seed = 4;
  const auto first = run_on_made_up_time(options, prompts(200, 4), at_once);
  const auto again = run_on_made_up_time(options, prompts(200, 4), at_once);
  std::size_t dropped = 0;
  for (std::size_t i = 0; i < 200; ++i) {
    CHECK(first.records[i].how == again.records[i].how);
    dropped += first.records[i].how == outcome::cancelled;
  }
  CHECK(dropped >= 70);
  CHECK(dropped <= 130);
}
