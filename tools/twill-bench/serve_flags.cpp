#include "tools/twill-bench/serve_flags.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string>
#include <tuple>
#include <utility>

#include "tools/twill-bench/protocols/protocol.hpp"

namespace twill::bench {
namespace {

/// Splits "K=V" (or K:V with another mark).
name_value split_pair(const std::string& text, char mark, const std::string& flag) {
  const std::size_t at = text.find(mark);
  if (at == std::string::npos || at == 0)
    throw CLI::ValidationError(flag, "must be NAME" + std::string(1, mark) + "VALUE, got " + text);
  return {text.substr(0, at), text.substr(at + 1)};
}

void add_pairs(CLI::App& command, const std::string& flag, char mark, std::vector<name_value>& into,
               const std::string& help) {
  command
      .add_option_function<std::vector<std::string>>(
          flag,
          [flag, mark, &into](const std::vector<std::string>& values) {
            for (const std::string& value : values)
              into.push_back(split_pair(value, mark, flag));
          },
          help)
      ->delimiter(',');
}

/// CLI11's own check of positive numbers refuses infinity.
std::string positive_or_inf(const std::string& text) {
  char* end = nullptr;
  return std::strtod(text.c_str(), &end) > 0 && *end == '\0' ? "" : "must be > 0, got " + text;
}

void add_seconds(CLI::App& command, const std::string& flag, const std::string& help,
                 const std::function<void(std::chrono::duration<double>)>& set) {
  command
      .add_option_function<double>(
          flag, [set](double s) { set(std::chrono::duration<double>(s)); }, help)
      ->check(CLI::NonNegativeNumber);
}

void add_load_flags(CLI::App& command, serve_options& o) {
  command.add_option("--num-prompts", o.n_prompts, "Requests")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      .add_option("--request-rate", o.request_rate_per_s,
                  "Open loop: requests per second; inf: all at once")
      ->check(positive_or_inf);
  command
      .add_option("--burstiness", o.burstiness,
                  "Shape of the gamma distributed gaps; 1: Poisson, less: burstier, inf: constant")
      ->check(positive_or_inf)
      ->capture_default_str();
  command
      .add_option_function<std::string>(
          "--request-rate-mode",
          [&o](const std::string& mode) {
            o.burstiness = mode == "constant" ? std::numeric_limits<double>::infinity() : 1.0;
          },
          "Gaps between requests: poisson or constant (another gamma: --burstiness)")
      ->check(CLI::IsMember({"poisson", "constant"}))
      ->excludes("--burstiness");
  auto* ramp = command
                   .add_option("--ramp-up-strategy", o.ramp,
                               "The rate rises during the run: linear or exponential")
                   ->check(CLI::IsMember({"linear", "exponential"}));
  for (const auto& [flag, into, help] :
       {std::tuple("--ramp-up-start-rps", &o.ramp_start_per_s, "Rate of the first requests"),
        std::tuple("--ramp-up-end-rps", &o.ramp_end_per_s, "Rate of the last requests")})
    ramp->needs(command.add_option(flag, *into, help)->check(CLI::PositiveNumber));
  command.add_option("--max-concurrency", o.max_concurrency,
                     "Most requests in flight (a closed loop when the rate is inf)");
  command.add_option("--num-warmups", o.n_warmups, "Requests before the clock starts");
  add_seconds(command, "--benchmark-duration", "Send nothing after so many seconds",
              [&o](std::chrono::duration<double> s) { o.duration_limit = s; });
  add_seconds(command, "--benchmark-grace-period", "What then still runs has so long (30)",
              [&o](std::chrono::duration<double> s) { o.grace = s; });
  command.add_flag("--stop-over-saturation", o.stop_over_saturation,
                   "End an open loop that the server can't follow");
  command
      .add_option("--repeats", o.n_repeats,
                  "Whole runs, each with the next seed; confidence intervals over them")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1000}));
  command
      .add_option("--request-cancellation-rate", o.cancellation_percent,
                  "Percent of the requests that are taken back before their end")
      ->check(CLI::Range(0.0, 100.0));
  command
      .add_option("--request-disconnect-rate", o.disconnect_percent,
                  "Percent of the requests whose connection is closed without a word")
      ->check(CLI::Range(0.0, 100.0));
  command.add_option(
      "--request-cancellation-delay", o.cancellation_delay_s,
      "Seconds after which they are dropped (default: after a drawn number of tokens)");
}

void add_prompt_flags(CLI::App& command, serve_options& o) {
  command.add_option("--dataset-name", o.dataset, "random, sharegpt or trace")
      ->check(CLI::IsMember({"random", "sharegpt", "trace"}))
      ->capture_default_str();
  command.add_option("--dataset-path", o.dataset_path,
                     "JSON file of conversations, or a recorded trace (Mooncake's JSON lines)");
  command.add_option("--trace-speed", o.trace_speed, "2: twice as fast as recorded")
      ->check(CLI::PositiveNumber);
  command.add_option("--prompt", o.prompt, "The same text in every request");
  command.add_flag("--ignore-eos", o.ignore_eos, "Go on to the length asked for");
  command.add_option("--random-input-len,--input-len", o.input_tokens, "Prompt tokens")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      .add_option_function<std::int32_t>(
          "--random-output-len,--output-len,--sharegpt-output-len",
          [&o](std::int32_t n) {
            o.output_tokens = n;
            o.lengths_given = true;
          },
          "Output tokens asked for (128)")
      ->check(CLI::PositiveNumber);
  command
      .add_option("--random-range-ratio", o.range_ratio,
                  "Lengths are uniform in [len*(1-r), len*(1+r)]")
      ->check(CLI::Range(0.0, 0.999999));
  command
      .add_option("--random-length-cv", o.length_cv,
                  "Above 0: lognormal lengths, standard deviation over mean")
      ->check(CLI::Range(0.0, 10.0))
      ->excludes("--random-range-ratio");
  command.add_option("--random-prefix-len", o.prefix_tokens, "Tokens that many prompts begin with")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--num-prefix-prompts", o.n_prefixes, "How many different such prefixes (1)")
      ->check(CLI::PositiveNumber);
  command
      .add_option("--num-turns", o.n_turns,
                  "Requests of a conversation; each holds what was said before (1)")
      ->check(CLI::PositiveNumber);
  add_seconds(command, "--turn-delay", "Between an answer and the next turn (0)",
              [&o](std::chrono::duration<double> s) { o.turn_pause = s; });
}

void add_report_flags(CLI::App& command, serve_arguments& all) {
  serve_options& o = all.options;
  add_pairs(command, "--goodput", ':', o.goodput_ms,
            "Bounds in ms, e.g. ttft:200,tpot:50,e2el:5000");
  command.add_option("--percentile-metrics", o.percentile_metrics, "Of ttft,tpot,itl,e2el")
      ->delimiter(',')
      ->check(CLI::IsMember({"ttft", "tpot", "itl", "e2el"}));
  command.add_option("--metric-percentiles", o.metric_percentiles, "e.g. 50,90,99 (99)")
      ->delimiter(',')
      ->check(CLI::Range(0.0, 100.0));
  for (const auto& [flag, into, help] :
       {std::tuple("--warmup-percent", &o.warmup_percent,
                   "Of the run's time, at its begin, that no figure counts (0)"),
        std::tuple("--cooldown-percent", &o.cooldown_percent, "The same at its end (0)")})
    command.add_option(flag, *into, help)->check(CLI::Range(0.0, 49.0));
  add_seconds(command, "--scrape-metrics",
              "Read the server's /metrics so often (s; 1 with --html, 0: never)",
              [&all](std::chrono::duration<double> s) {
                all.options.scrape_interval = s;
                all.scrape_given = true;
              });
  command.add_flag("--save-result", o.save_result, "Write a JSON file");
  command.add_flag("--save-detailed", o.save_detailed, "With per-request lists and texts");
  command.add_option("--result-dir", o.result_dir, "Where (default: here)");
  command.add_option("--result-filename", o.result_filename);
  command.add_option("--html", all.html_path, "Write a page with the table and charts");
  command.add_option("--label", o.label, "In the file and its name");
  command.add_option_function<std::vector<std::string>>(
      "--metadata",
      [&o](const std::vector<std::string>& values) {
        for (const std::string& value : values)
          o.metadata.push_back(split_pair(value, '=', "--metadata"));
      },
      "K=V, for the result file");
  command.add_flag("!--no-progress,!--disable-tqdm", all.show_progress, "No progress line");
}

} // namespace

void add_target_flags(CLI::App& command, serve_options& o) {
  command.add_option("--backend", o.backend, "What to speak")
      ->check(CLI::IsMember(backend_names()))
      ->capture_default_str();
  auto* url = command.add_option("--base-url", o.base_url, "Server, e.g. http://127.0.0.1:8080");
  auto host = std::make_shared<std::string>("127.0.0.1");
  auto port = std::make_shared<int>(8080);
  auto* host_flag = command.add_option("--host", *host, "Server host")->excludes(url);
  auto* port_flag = command.add_option("--port", *port, "Server port")
                        ->check(CLI::Range(1, 65535))
                        ->excludes(url);
  command.parse_complete_callback([&o, host, port, host_flag, port_flag] {
    if (host_flag->count() + port_flag->count() > 0)
      o.base_url = "http://" + (host->find(':') == std::string::npos ? *host : "[" + *host + "]") +
                   ":" + std::to_string(*port);
  });
  command.add_option("--endpoint", o.endpoint, "Path (default: the backend's own)");
  command.add_option("--model", o.model, "Model name (default: the server's first)");
  command.add_option_function<std::vector<std::string>>(
      "--header",
      [&o](const std::vector<std::string>& values) {
        for (const std::string& value : values)
          o.headers.push_back(split_pair(value, '=', "--header"));
      },
      "HTTP header K=V, may be repeated");
  command.add_option("--extra-body", o.extra_body, "JSON object merged into every request")
      ->check([](const std::string& text) -> std::string {
        boost::system::error_code error;
        const auto value = boost::json::parse(text, error);
        return !error && value.is_object() ? "" : "must be a JSON object, got " + text;
      });
  command.add_flag("!--no-stream", o.stream, "Ask for whole replies (HTTP backends)");
  command.add_option("--connections", o.connections,
                     "WebSocket: multiplex all requests over N sockets (0: one each, reused)");
  command.add_flag("!--no-keep-alive", o.keep_alive, "A new connection for every request");
}

void add_client_flags(CLI::App& command, serve_options& o) {
  command.add_option("--seed", o.seed, "Of prompts, arrivals and cancellations")
      ->capture_default_str();
  command.add_option_function<double>(
      "--request-timeout", [&o](double s) { o.request_timeout = std::chrono::duration<double>(s); },
      "Seconds a request may take (600)");
  command.add_option_function<double>(
      "--ready-check-timeout-sec",
      [&o](double s) { o.ready_timeout = std::chrono::duration<double>(s); },
      "Wait so long for the server, then try one request (0: neither)");
  command.add_option("--io-threads", o.io_threads, "I/O threads")
      ->check(CLI::Range(1u, 64u))
      ->capture_default_str();
}

void add_sampling_flags(CLI::App& command, serve_options& o) {
  command.add_option_function<std::string>(
      "--random-id-range",
      [&o](const std::string& text) {
        const name_value ends = split_pair(text, ':', "--random-id-range");
        o.id_range = {std::stoi(ends.first), std::stoi(ends.second)};
        if (o.id_range->first < 0 || o.id_range->first > o.id_range->second)
          throw CLI::ValidationError("--random-id-range", "must be LOW:HIGH, got " + text);
      },
      "Ids that random prompts use, LOW:HIGH (default: the middle of the vocabulary)");
  command.add_option("--temperature", o.temperature, "0 is greedy (0)");
  command.add_option("--top-p", o.top_p);
  command.add_option("--top-k", o.top_k);
}

std::shared_ptr<serve_arguments> add_serve_flags(CLI::App& command) {
  auto all = std::make_shared<serve_arguments>();
  add_target_flags(command, all->options);
  add_load_flags(command, all->options);
  add_client_flags(command, all->options);
  add_prompt_flags(command, all->options);
  add_sampling_flags(command, all->options);
  add_report_flags(command, *all);
  return all;
}

} // namespace twill::bench
