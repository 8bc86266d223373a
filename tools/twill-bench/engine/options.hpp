// options: what one run of `twill-bench serve` is asked to do. Plain data, filled by the flags.
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
  std::string model;               ///< empty: the server's first
  std::vector<name_value> headers; ///< load_run adds the key, see api_key.hpp
  std::string api_key;             ///< --api-key; empty: from the environment, or none
  std::string cacert;              ///< PEM file of the authorities to trust; empty: the system's
  std::string extra_body;          ///< a JSON object merged into every request, or empty
  bool stream = true;
  std::size_t connections = 0; ///< WebSocket backends: multiplex all over so many sockets; 0: one
                               ///< request at a time on a socket
  bool keep_alive = true;      ///< false: a new connection for every request

  // load
  std::size_t n_prompts = 1000;
  double request_rate_per_s = std::numeric_limits<double>::infinity();
  double burstiness = 1.0; ///< shape of the gamma distributed gaps; infinite: constant gaps
  std::string ramp;        ///< "linear" or "exponential": the rate rises; empty: it stays
  double ramp_start_per_s = 0, ramp_end_per_s = 0;
  std::size_t max_concurrency = 0;                             ///< 0: no limit
  std::optional<std::chrono::duration<double>> duration_limit; ///< nothing is sent after it
  std::chrono::duration<double> grace{30};                     ///< for what then still runs
  bool stop_over_saturation = false; ///< end an open loop that the server can't follow
  std::size_t n_repeats = 1;         ///< whole runs, each with the next seed
  std::size_t n_warmups = 0;
  std::uint64_t seed = 0;
  double cancellation_percent = 0; ///< requests taken back before their end
  double disconnect_percent = 0;   ///< requests whose connection is closed without a word
  std::optional<double> cancellation_delay_s; ///< absent: after a drawn number of tokens
  std::chrono::duration<double> request_timeout{600};
  std::chrono::duration<double> ready_timeout{0};
  unsigned io_threads = 1;

  // prompts
  std::string dataset = "random"; ///< random | sharegpt | trace
  double trace_speed = 1.0;       ///< 2: twice as fast as it was recorded
  std::string dataset_path;
  std::string prompt; ///< fixed text; wins over the data set
  std::int32_t input_tokens = 1024;
  std::int32_t output_tokens = 128;
  double range_ratio = 0.0;       ///< lengths are uniform in [len * (1 - r), len * (1 + r)]
  double length_cv = 0.0;         ///< above 0: lognormal lengths of this coefficient of variation
  std::int32_t prefix_tokens = 0; ///< put before every prompt, shared by many
  std::size_t n_prefixes = 1;     ///< how many different ones
  std::size_t n_turns = 1; ///< requests of a conversation, each with all that was said before
  std::chrono::duration<double> turn_pause{0}; ///< between an answer and the next turn
  std::optional<std::pair<std::int32_t, std::int32_t>> id_range; ///< random ids, both included
  bool lengths_given = false;                                    ///< output_tokens came from a flag

  // sampling
  bool ignore_eos = false;
  std::optional<double> temperature = 0.0;
  std::optional<double> top_p;
  std::optional<std::int32_t> top_k;

  // report
  std::vector<name_value> goodput_ms; ///< {ttft | tpot | e2el, milliseconds}
  std::vector<std::string> percentile_metrics{"ttft", "tpot", "itl"};
  std::vector<double> metric_percentiles{99};
  double warmup_percent = 0;   ///< of the run's time, at its begin, that no figure counts
  double cooldown_percent = 0; ///< and at its end
  std::chrono::duration<double> scrape_interval{0}; ///< of the server's /metrics; 0: never
  bool save_result = false;
  bool save_detailed = false;
  std::string result_dir;
  std::string result_filename;
  std::string label;
  std::vector<name_value> metadata;
};

/// Requests have due times of their own: a rate, a ramp or a recorded trace.
inline bool is_open_loop(const serve_options& options) {
  return !std::isinf(options.request_rate_per_s) || !options.ramp.empty() ||
         options.dataset == "trace";
}

} // namespace twill::bench
