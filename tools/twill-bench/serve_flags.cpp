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

/// Splits "K=V", or "K:V" where `mark` is a colon.
name_value split_pair(const std::string& text, char mark, const std::string& flag) {
  const std::size_t at = text.find(mark);
  if (at == std::string::npos || at == 0)
    throw CLI::ValidationError(flag, "must be NAME" + std::string(1, mark) + "VALUE, got " + text);
  return {text.substr(0, at), text.substr(at + 1)};
}

CLI::Option* add_pairs(CLI::App& command, const std::string& flag, char mark,
                       std::vector<name_value>& into, const std::string& help) {
  return command.add_option_function<std::vector<std::string>>(
      flag,
      [flag, mark, &into](const std::vector<std::string>& values) {
        for (const std::string& value : values)
          into.push_back(split_pair(value, mark, flag));
      },
      help);
}

/// A check of its own, because CLI11's check of positive numbers refuses infinity.
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
  command.add_option("--num-prompts", o.n_prompts, "The number of requests to send.")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      .add_option("--request-rate", o.request_rate_per_s,
                  "The requests per second of an open loop; inf, the default, sends all at once.")
      ->check(positive_or_inf);
  command
      .add_option("--burstiness", o.burstiness,
                  "The shape of the gamma distribution of gaps between requests: 1 is a Poisson "
                  "process, less is burstier, inf makes all gaps equal.")
      ->check(positive_or_inf)
      ->capture_default_str();
  command
      .add_option_function<std::string>(
          "--request-rate-mode",
          [&o](const std::string& mode) {
            o.burstiness = mode == "constant" ? std::numeric_limits<double>::infinity() : 1.0;
          },
          "How gaps between requests are drawn: poisson or constant. Use --burstiness for another "
          "shape.")
      ->check(CLI::IsMember({"poisson", "constant"}))
      ->excludes("--burstiness");
  auto* ramp = command
                   .add_option("--ramp-up-strategy", o.ramp,
                               "How the rate rises during the run: linear or exponential.")
                   ->check(CLI::IsMember({"linear", "exponential"}));
  for (const auto& [flag, into, help] :
       {std::tuple("--ramp-up-start-rps", &o.ramp_start_per_s, "The rate of the first requests."),
        std::tuple("--ramp-up-end-rps", &o.ramp_end_per_s, "The rate of the last requests.")})
    ramp->needs(command.add_option(flag, *into, help)->check(CLI::PositiveNumber));
  command.add_option("--max-concurrency", o.max_concurrency,
                     "The most requests in flight. With the rate inf this makes a closed loop.");
  command.add_option("--num-warmups", o.n_warmups,
                     "The number of requests that are sent before the clock starts.");
  add_seconds(command, "--benchmark-duration", "Sends no request after this many seconds.",
              [&o](std::chrono::duration<double> s) { o.duration_limit = s; });
  add_seconds(command, "--benchmark-grace-period",
              "The seconds that requests may still run after --benchmark-duration (default: 30).",
              [&o](std::chrono::duration<double> s) { o.grace = s; });
  command.add_flag("--stop-over-saturation", o.stop_over_saturation,
                   "Ends an open loop that the server cannot keep up with.");
  command
      .add_option("--repeats", o.n_repeats,
                  "The number of whole runs, each with the next seed; confidence intervals are "
                  "computed over them.")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1000}));
  command
      .add_option("--request-cancellation-rate", o.cancellation_percent,
                  "The percentage of requests that are cancelled before their end.")
      ->check(CLI::Range(0.0, 100.0));
  command
      .add_option("--request-disconnect-rate", o.disconnect_percent,
                  "The percentage of requests whose connection is closed before their end, without "
                  "a cancellation.")
      ->check(CLI::Range(0.0, 100.0));
  command.add_option("--request-cancellation-delay", o.cancellation_delay_s,
                     "The seconds after which a request is cancelled or disconnected (default: "
                     "after a random number of tokens).");
}

void add_prompt_flags(CLI::App& command, serve_options& o) {
  command
      .add_option("--dataset-name", o.dataset,
                  "Where prompts come from: random, sharegpt or trace.")
      ->check(CLI::IsMember({"random", "sharegpt", "trace"}))
      ->capture_default_str();
  command.add_option(
      "--dataset-path", o.dataset_path,
      "The JSON file of conversations, or the recorded trace in Mooncake's JSON lines.");
  command
      .add_option("--trace-speed", o.trace_speed,
                  "The speed of a trace; 2 sends it twice as fast as it was recorded.")
      ->check(CLI::PositiveNumber);
  command.add_option("--prompt", o.prompt, "The prompt that every request sends.");
  command.add_flag(
      "--ignore-eos", o.ignore_eos,
      "Asks the server to ignore end-of-text tokens, so that every output has its full length.");
  command
      .add_option("--random-input-len,--input-len", o.input_tokens,
                  "The number of tokens of each prompt.")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      .add_option_function<std::int32_t>(
          "--random-output-len,--output-len,--sharegpt-output-len",
          [&o](std::int32_t n) {
            o.output_tokens = n;
            o.lengths_given = true;
          },
          "The number of output tokens that each request asks for (default: 128).")
      ->check(CLI::PositiveNumber);
  command
      .add_option("--random-range-ratio", o.range_ratio,
                  "Draws lengths uniformly from [len*(1-r), len*(1+r)], where r is this ratio.")
      ->check(CLI::Range(0.0, 0.999999));
  command
      .add_option("--random-length-cv", o.length_cv,
                  "Draws lengths from a lognormal distribution with this standard deviation over "
                  "mean; 0 does not.")
      ->check(CLI::Range(0.0, 10.0))
      ->excludes("--random-range-ratio");
  command
      .add_option("--random-prefix-len", o.prefix_tokens,
                  "The number of tokens that prompts have in common at their beginning.")
      ->check(CLI::NonNegativeNumber);
  command
      .add_option("--num-prefix-prompts", o.n_prefixes,
                  "The number of different common beginnings (default: 1).")
      ->check(CLI::PositiveNumber);
  command
      .add_option("--num-turns", o.n_turns,
                  "The number of requests of a conversation, each of which holds what was said "
                  "before (default: 1).")
      ->check(CLI::PositiveNumber);
  add_seconds(
      command, "--turn-delay",
      "The seconds between an answer and the next request of its conversation (default: 0).",
      [&o](std::chrono::duration<double> s) { o.turn_pause = s; });
}

void add_report_flags(CLI::App& command, serve_arguments& all) {
  serve_options& o = all.options;
  add_pairs(command, "--goodput", ':', o.goodput_ms,
            "Counts requests that stay within these bounds in ms, for example "
            "ttft:200,tpot:50,e2el:5000.")
      ->delimiter(',');
  command
      .add_option("--percentile-metrics", o.percentile_metrics,
                  "The metrics whose percentiles are shown: any of ttft,tpot,itl,e2el (default: "
                  "ttft,tpot,itl).")
      ->delimiter(',')
      ->check(CLI::IsMember({"ttft", "tpot", "itl", "e2el"}));
  command
      .add_option("--metric-percentiles", o.metric_percentiles,
                  "The percentiles that are shown, for example 50,90,99 (default: 99).")
      ->delimiter(',')
      ->check(CLI::Range(0.0, 100.0));
  for (const auto& [flag, into, help] :
       {std::tuple("--warmup-percent", &o.warmup_percent,
                   "The percentage of the run's time at its beginning that no figure counts "
                   "(default: 0)."),
        std::tuple(
            "--cooldown-percent", &o.cooldown_percent,
            "The percentage of the run's time at its end that no figure counts (default: 0).")})
    command.add_option(flag, *into, help)->check(CLI::Range(0.0, 49.0));
  add_seconds(command, "--scrape-metrics",
              "The seconds between two reads of the server's /metrics; 0 never reads it (default: "
              "1 with --html, else 0).",
              [&all](std::chrono::duration<double> s) {
                all.options.scrape_interval = s;
                all.scrape_given = true;
              });
  command.add_flag("--save-result", o.save_result, "Writes the results to a JSON file.");
  command.add_flag("--save-detailed", o.save_detailed,
                   "Adds the figures and the text of every request to the JSON file.");
  command.add_option("--result-dir", o.result_dir,
                     "The folder of the JSON file (default: the current folder).");
  command.add_option(
      "--result-filename", o.result_filename,
      "The name of the JSON file (default: from the backend, the load, the model and the time).");
  command.add_option("--html", all.html_path,
                     "Writes an HTML page with the table and charts to this file.");
  command.add_option("--label", o.label,
                     "A label that becomes part of the JSON file and of its name.");
  add_pairs(command, "--metadata", '=', o.metadata,
            "Adds KEY=VALUE to the JSON file; may be repeated.");
  command.add_flag("!--no-progress,!--disable-tqdm", all.show_progress, "Shows no progress line.");
}

} // namespace

void add_target_flags(CLI::App& command, serve_options& o) {
  command.add_option("--backend", o.backend, "The protocol of the server.")
      ->check(CLI::IsMember(backend_names()))
      ->capture_default_str();
  auto* url = command.add_option("--base-url", o.base_url,
                                 "The address of the server (http, https, ws or wss), for example "
                                 "http://127.0.0.1:8080.");
  auto host = std::make_shared<std::string>("127.0.0.1");
  auto port = std::make_shared<int>(8080);
  auto* host_flag =
      command.add_option("--host", *host, "The host of the server, instead of --base-url.")
          ->excludes(url);
  auto* port_flag =
      command.add_option("--port", *port, "The port of the server, instead of --base-url.")
          ->check(CLI::Range(1, 65535))
          ->excludes(url);
  command.parse_complete_callback([&o, host, port, host_flag, port_flag] {
    if (host_flag->count() + port_flag->count() > 0)
      o.base_url = "http://" + (host->find(':') == std::string::npos ? *host : "[" + *host + "]") +
                   ":" + std::to_string(*port);
  });
  command.add_option("--endpoint", o.endpoint,
                     "The path that requests are sent to (default: the backend's own).");
  command.add_option("--model", o.model,
                     "The name of the model (default: the first that the server lists).");
  command
      .add_option("--api-key", o.api_key,
                  "The API key, sent as Authorization: Bearer KEY (default: TWILL_API_KEY, else "
                  "OPENAI_API_KEY, from the environment).")
      ->type_name("KEY");
  command
      .add_option("--cacert", o.cacert,
                  "The PEM file of the authorities to trust for https and wss (default: the "
                  "system's).")
      ->type_name("FILE");
  add_pairs(command, "--header", '=', o.headers,
            "Sends the HTTP header NAME=VALUE with every request; may be repeated.");
  command
      .add_option("--extra-body", o.extra_body, "A JSON object that is merged into every request.")
      ->check([](const std::string& text) -> std::string {
        boost::system::error_code error;
        const auto value = boost::json::parse(text, error);
        return !error && value.is_object() ? "" : "must be a JSON object, got " + text;
      });
  command.add_flag("!--no-stream", o.stream,
                   "Asks for whole replies instead of streams (HTTP backends).");
  command.add_option("--connections", o.connections,
                     "The number of WebSocket connections that all requests share; 0 gives each "
                     "request in flight its own and reuses it.");
  command.add_flag("!--no-keep-alive", o.keep_alive, "Opens a new connection for every request.");
}

void add_client_flags(CLI::App& command, serve_options& o) {
  command.add_option("--seed", o.seed, "The seed of prompts, arrivals and cancellations.")
      ->capture_default_str();
  command.add_option_function<double>(
      "--request-timeout", [&o](double s) { o.request_timeout = std::chrono::duration<double>(s); },
      "The seconds that a request may take (default: 600).");
  command.add_option_function<double>(
      "--ready-check-timeout-sec",
      [&o](double s) { o.ready_timeout = std::chrono::duration<double>(s); },
      "The most seconds to wait for the server, which one request then tries; 0 starts at once, "
      "without a try (default: 0).");
  command.add_option("--io-threads", o.io_threads, "The number of I/O threads.")
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
      "The range of token ids that random prompts use, LOW:HIGH (default: the middle of the "
      "vocabulary).");
  command.add_option("--temperature", o.temperature,
                     "The sampling temperature; 0 takes the most likely token (default: 0).");
  command.add_option("--top-p", o.top_p,
                     "Samples from the most likely tokens that have this probability together.");
  command.add_option("--top-k", o.top_k, "Samples from this many of the most likely tokens.");
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
