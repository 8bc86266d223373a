// bench_drive: runs of the load engine against a scripted server, for tests.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/tools/bench_server.hpp"
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

inline run_outcome run(const serve_options& options, const std::vector<prompt>& what,
                       std::vector<double> due_s = {}) {
  const auto dialect = make_protocol(options);
  engine driver(options, *dialect);
  progress_counts counts;
  due_s.resize(what.size(), 0.0);
  run_outcome out = driver.run(what, due_s, options.max_concurrency, counts);
  CHECK(counts.ended == what.size());
  return out;
}

struct attempt {
  bool timely;
  double client_lag_ms; ///< the tool's own measure of how late its threads ran
};

/// A busy machine may spoil the times of a run, and the tool then knows: only runs on a machine
/// that was quiet, as far as it could see, count against it, and one timely run settles the matter.
inline void try_until(const std::function<attempt()>& run_once) {
  int late_though_quiet = 0;
  for (int turn = 0; turn < 10; ++turn) {
    const attempt got = run_once();
    if (got.timely) return;
    late_though_quiet += got.client_lag_ms < 2;
  }
  CHECK(late_though_quiet < 3);
  WARN("the machine is too busy to check times");
}

} // namespace twill::tests
