#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include <array>
#include <cmath>
#include <cstdio>

#include "tools/twill-bench/engine/report.hpp"

namespace twill::bench {
namespace {

namespace json = boost::json;

void put_summary(json::object& out, const std::string& metric, const summary& of,
                 const std::vector<double>& percents) {
  out["mean_" + metric + "_ms"] = of.mean;
  out["median_" + metric + "_ms"] = of.median;
  out["std_" + metric + "_ms"] = of.std;
  for (std::size_t i = 0; i < percents.size(); ++i) {
    std::array<char, 64> key{};
    std::snprintf(key.data(), key.size(), "p%.10g_%s_ms", percents[i], metric.c_str());
    out[key.data()] = of.percentiles[i];
  }
}

void put_setup(json::object& out, const report_input& in) {
  const serve_options& options = in.options;
  out["date"] = in.date;
  out["backend"] = options.backend;
  out["endpoint_type"] = options.backend;
  out["label"] = options.label.empty() ? json::value(nullptr) : json::value(options.label);
  out["model_id"] = options.model;
  out["tokenizer_id"] = options.model; // the server's own tokenizer counts the lengths
  out["num_prompts"] = options.n_prompts;
  for (const auto& [name, value] : options.metadata)
    out[name] = value;
  if (std::isinf(options.request_rate_per_s))
    out["request_rate"] = "inf";
  else
    out["request_rate"] = options.request_rate_per_s;
  if (std::isinf(options.burstiness))
    out["burstiness"] = "inf"; // JSON has no infinite numbers
  else
    out["burstiness"] = options.burstiness;
  out["max_concurrency"] =
      options.max_concurrency > 0 ? json::value(options.max_concurrency) : json::value(nullptr);
}

void put_totals(json::object& out, const report_input& in) {
  const serve_metrics& m = in.metrics;
  out["duration"] = in.run.duration_s;
  out["completed"] = m.completed;
  out["failed"] = m.failed;
  out["total_input_tokens"] = m.input_tokens;
  out["total_output_tokens"] = m.output_tokens;
  out["request_throughput"] = m.request_throughput;
  out["request_goodput"] =
      in.options.goodput_ms.empty() ? json::value(nullptr) : json::value(m.request_goodput);
  out["output_throughput"] = m.output_throughput;
  out["total_token_throughput"] = m.total_throughput;
  out["max_output_tokens_per_s"] = m.peak_output_throughput;
  out["max_concurrent_requests"] = m.peak_concurrent;
}

void put_repeats(json::object& out, const report_input& in) {
  if (in.repeats.empty()) return;
  json::object repeats;
  for (const repeated_figure& one : in.repeats)
    repeats[one.name] = json::object{{"mean", one.mean},
                                     {"half_width_95", one.half_width},
                                     {"values", json::array(one.values.begin(), one.values.end())}};
  out["twill_bench"].as_object()["repeats"] = std::move(repeats);
}

/// Adds the figures for which vLLM has no key.
void put_own(json::object& out, const report_input& in) {
  const serve_metrics& m = in.metrics;
  json::object finishes, errors;
  for (const auto& [name, n] : m.finish_reasons)
    finishes[name] = n;
  for (const auto& [name, n] : m.error_kinds)
    errors[name] = n;
  json::array remarks;
  for (const std::string& line : report_remarks(in))
    remarks.emplace_back(line);
  out["twill_bench"] = json::object{
      {"version", TWILL_VERSION},
      {"interrupted", in.run.interrupted},
      {"ended_early", in.run.ended_early},
      {"window_s", json::array{m.window_from_s, m.window_to_s}},
      {"outside_window", m.outside_window},
      {"cancelled", m.cancelled},
      {"unfinished", m.interrupted + m.unsent},
      {"peak_in_flight", m.peak_in_flight},
      {"seed", in.options.seed},
      {"ignore_eos", in.options.ignore_eos},
      {"stopped_early", m.stopped_early},
      {"context_limited", m.context_limited},
      {"lengths_counted_here", m.counted_lengths},
      {"mean_latency_per_token_ms", m.mean_ms_per_token},
      {"mean_latency_per_output_token_ms", m.mean_ms_per_output_token},
      {"finish_reasons", std::move(finishes)},
      {"error_kinds", std::move(errors)},
      {"client_cpu_share", in.run.client.cpu_share},
      {"client_loop_lag_p99_ms", in.run.client.loop_lag_p99_ms},
      {"client_send_lag_p99_ms", in.run.client.send_lag_p99_ms},
      {"remarks", std::move(remarks)},
  };
  put_repeats(out, in);
}

/// Adds one list per field, with one entry for each request that was sent, in the order of request
/// numbers.
void put_detail(json::object& out, const report_input& in) {
  json::array inputs, outputs, ttfts, itls, latencies, starts, queues, texts, errors, reasons;
  const bool open_loop = is_open_loop(in.options);
  for (const record& one : in.run.records) {
    if (one.how == outcome::unsent) continue;
    inputs.emplace_back(one.input_tokens);
    outputs.emplace_back(one.output_tokens);
    ttfts.emplace_back(one.ttft_s);
    itls.emplace_back(json::array(one.itl_s.begin(), one.itl_s.end()));
    latencies.emplace_back(one.latency_s);
    starts.emplace_back(one.start_s);
    queues.emplace_back(open_loop ? one.start_s - one.due_s : 0.0);
    texts.emplace_back(one.text);
    errors.emplace_back(one.error_kind.empty() ? "" : one.error_kind + ": " + one.error);
    reasons.emplace_back(one.how == outcome::completed ? one.finish_reason
                         : one.how == outcome::failed  ? "error"
                                                       : "cancelled");
  }
  out["input_lens"] = std::move(inputs);
  out["output_lens"] = std::move(outputs);
  out["ttfts"] = std::move(ttfts);
  out["itls"] = std::move(itls);
  out["latencies"] = std::move(latencies);
  out["start_times"] = std::move(starts);
  out["queue_times"] = std::move(queues);
  out["generated_texts"] = std::move(texts);
  out["errors"] = std::move(errors);
  out["finish_reasons"] = std::move(reasons);
}

} // namespace

std::string report_json(const report_input& in) {
  json::object out;
  put_setup(out, in);
  put_totals(out, in);
  const auto& percents = in.options.metric_percentiles;
  if (in.options.stream) {
    put_summary(out, "ttft", in.metrics.ttft_ms, percents);
    put_summary(out, "tpot", in.metrics.tpot_ms, percents);
    put_summary(out, "itl", in.metrics.itl_ms, percents);
  }
  put_summary(out, "e2el", in.metrics.e2el_ms, percents);
  put_summary(out, "queue", in.metrics.queue_ms, percents);
  if (in.options.stream)
    put_summary(out, "ttft_with_queue", in.metrics.ttft_with_queue_ms, percents);
  put_summary(out, "e2el_with_queue", in.metrics.e2el_with_queue_ms, percents);
  if (in.options.save_detailed) put_detail(out, in);
  put_own(out, in);
  return json::serialize(out);
}

} // namespace twill::bench
