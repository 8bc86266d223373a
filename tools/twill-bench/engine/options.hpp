// options: the settings of one run of `twill-bench serve`. Plain data, filled from the flags.
#pragma once

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace twill::bench {

using name_value = std::pair<std::string, std::string>;

struct serve_options {
  // target
  std::string backend = "openai";
  std::string base_url = "http://127.0.0.1:8080";
  std::string endpoint;            ///< path; empty: the backend's own
  std::string model;               ///< empty: the first model that the server lists
  std::vector<name_value> headers; ///< load_run adds the API key, see api_key.hpp
  std::string api_key;             ///< --api-key; empty: taken from the environment, if it is there
  /// PEM file of the certificate authorities to trust; empty: the system's.
  std::string cacert;
  std::string extra_body; ///< a JSON object merged into every request, or empty
  bool stream = true;
  /// For WebSocket backends: all requests share this many sockets; 0: a socket carries one request
  /// at a time.
  std::size_t connections = 0;
  bool keep_alive = true; ///< false: a new connection for every request

  // load
  std::size_t n_prompts = 1000;
  double request_rate_per_s = std::numeric_limits<double>::infinity();
  double burstiness = 1.0; ///< shape of the gamma-distributed gaps; infinite: constant gaps
  /// How the rate rises: "linear" or "exponential"; empty: the rate is constant.
  std::string ramp;
  double ramp_start_per_s = 0, ramp_end_per_s = 0;
  std::size_t max_concurrency = 0;                             ///< 0: no limit
  std::optional<std::chrono::duration<double>> duration_limit; ///< nothing is sent after this time
  /// Time after duration_limit in which requests that still run may end.
  std::chrono::duration<double> grace{30};
  bool stop_over_saturation = false; ///< end an open loop when the server can't keep up with it
  std::size_t n_repeats = 1;         ///< number of whole runs, each with the next seed
  std::size_t n_warmups = 0;
  std::uint64_t seed = 0;
  double cancellation_percent = 0; ///< share of requests that are cancelled before their end
  /// Share of requests whose connection is closed without a message that cancels them.
  double disconnect_percent = 0;
  /// When requests are cancelled or disconnected; absent: after a randomly drawn number of tokens.
  std::optional<double> cancellation_delay_s;
  std::chrono::duration<double> request_timeout{600};
  std::chrono::duration<double> ready_timeout{0};
  unsigned io_threads = 1;

  // prompts
  std::string dataset = "random"; ///< random | sharegpt | trace
  double trace_speed = 1.0;       ///< 2: twice as fast as the trace was recorded
  std::string dataset_path;
  std::string prompt; ///< fixed text, used instead of the data set
  std::int32_t input_tokens = 1024;
  std::int32_t output_tokens = 128;
  double range_ratio = 0.0; ///< lengths are uniform in [len * (1 - r), len * (1 + r)]
  /// Above 0: lengths have a lognormal distribution with this coefficient of variation.
  double length_cv = 0.0;
  std::int32_t prefix_tokens = 0; ///< tokens put before every prompt, shared by many prompts
  std::size_t n_prefixes = 1;     ///< number of different prefixes
  /// Requests of a conversation; each one carries all earlier prompts and answers.
  std::size_t n_turns = 1;
  std::chrono::duration<double> turn_pause{0}; ///< pause between an answer and the next turn
  /// Random ids lie in this range, both ends included.
  std::optional<std::pair<std::int32_t, std::int32_t>> id_range;
  bool lengths_given = false; ///< a flag set output_tokens

  // sampling
  bool ignore_eos = false;
  std::optional<double> temperature = 0.0;
  std::optional<double> top_p;
  std::optional<std::int32_t> top_k;

  // report
  std::vector<name_value> goodput_ms; ///< {ttft | tpot | e2el, milliseconds}
  std::vector<std::string> percentile_metrics{"ttft", "tpot", "itl"};
  std::vector<double> metric_percentiles{99};
  /// Share of the run's time, at its beginning, that no figure counts.
  double warmup_percent = 0;
  double cooldown_percent = 0; ///< the share at the end of the run that no figure counts
  /// Interval between readings of the server's /metrics; 0: never.
  std::chrono::duration<double> scrape_interval{0};
  bool save_result = false;
  bool save_detailed = false;
  std::string result_dir;
  std::string result_filename;
  std::string label;
  std::vector<name_value> metadata;
};

/// Whether requests have due times of their own, from a rate, a ramp or a recorded trace.
inline bool is_open_loop(const serve_options& options) {
  return !std::isinf(options.request_rate_per_s) || !options.ramp.empty() ||
         options.dataset == "trace";
}

} // namespace twill::bench
