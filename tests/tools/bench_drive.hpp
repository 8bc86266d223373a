// bench_drive: runs of the load engine against a scripted server, for tests.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/catch.hpp"
#include "tests/tools/bench_server.hpp"
#include "tests/tools/made_up_time.hpp"
#include "tests/tools/scripted_transport.hpp"
#include "tools/twill-bench/engine/metrics.hpp"
#include "tools/twill-bench/engine/run.hpp"

namespace twill::tests {

using bench::engine;
using bench::make_protocol;
using bench::progress_counts;
using bench::prompt;
using bench::run_outcome;
using bench::serve_options;

inline serve_options options_for(const bench_server& server, const std::string& backend) {
  serve_options options;
  options.backend = backend;
  options.base_url = server.url();
  options.model = "scripted";
  options.request_timeout = std::chrono::seconds(20);
  options.max_concurrency = 4;
  options.save_detailed = true;
  return options;
}

inline std::vector<prompt> prompts(std::size_t n, std::int32_t output_tokens) {
  prompt one;
  one.ids = {1, 2, 3, 4, 5, 6, 7};
  one.text = "seven!!";
  one.input_tokens = 7;
  one.output_tokens = output_tokens;
  return std::vector<prompt>(n, one);
}

inline run_outcome run(const serve_options& options, const std::vector<prompt>& prompts,
                       std::vector<double> due_s = {}) {
  const auto dialect = make_protocol(options);
  engine driver(options, *dialect);
  progress_counts counts;
  due_s.resize(prompts.size(), 0.0);
  run_outcome out = driver.run(prompts, due_s, options.max_concurrency, counts);
  CHECK(counts.ended == prompts.size());
  return out;
}

/// Options of a run on made-up time.
inline serve_options made_up_options(const std::string& backend) {
  serve_options options;
  options.backend = backend;
  options.base_url = "http://127.0.0.1:1"; // nothing is opened
  options.model = "scripted";
  options.max_concurrency = 1;
  options.metric_percentiles = {90, 99};
  return options;
}

/// Runs the load engine by a made-up clock, which only the scripts advance: its times are exact.
inline run_outcome run_on_made_up_time(const serve_options& options,
                                       const std::vector<prompt>& prompts,
                                       std::function<script(int)> plan,
                                       std::vector<double> due_s = {}) {
  made_up_time time;
  const auto dialect = make_protocol(options);
  engine driver(options, *dialect, {&time, scripted_transport(time, std::move(plan))});
  progress_counts counts;
  due_s.resize(prompts.size(), 0.0);
  return driver.run(prompts, due_s, options.max_concurrency, counts);
}

} // namespace twill::tests
