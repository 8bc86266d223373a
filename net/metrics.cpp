#include "net/metrics.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>
#include <unistd.h>

namespace twill::net {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using labels = std::vector<ClientMetric::Label>;

void put_histogram(ClientMetric& to, const actors::histogram& from) {
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < from.counts.size(); ++i) {
    below += from.counts[i];
    const double bound =
        i < from.bounds.size() ? from.bounds[i] : std::numeric_limits<double>::infinity();
    to.histogram.bucket.push_back({below, bound});
  }
  to.histogram.sample_count = below;
  to.histogram.sample_sum = from.sum;
}

using families = std::vector<MetricFamily>;

/// Turns one snapshot of a model's counters into metric families.
class model_metrics {
public:
  explicit model_metrics(const actors::model_stats& of)
      : stats_(of.stats), labels_{{"engine", "0"}, {"model_name", of.model}} {}

  families collect() const {
    families to;
    collect_gauges(to);
    collect_counters(to);
    collect_histograms(to);
    return to;
  }

  /// What is not of any model; it has the labels of the first, as it always had.
  void collect_process(families& to, std::int64_t open_sockets) const {
    gauge(to, "process_resident_memory_bytes", "Resident memory of the process",
          static_cast<double>(resident_bytes()));
    gauge(to, "open_sockets", "Open client connections", static_cast<double>(open_sockets));
  }

private:
  ClientMetric metric(labels extra = {}) const {
    ClientMetric metric;
    metric.label = labels_;
    metric.label.insert(metric.label.end(), extra.begin(), extra.end());
    return metric;
  }

  void gauge(families& to, const char* name, const char* help, double value,
             labels extra = {}) const {
    auto one = metric(std::move(extra));
    one.gauge.value = value;
    to.push_back({std::string("twill:") + name, help, MetricType::Gauge, {std::move(one)}});
  }

  void counter(families& to, const char* name, const char* help, std::uint64_t value) const {
    auto one = metric();
    one.counter.value = static_cast<double>(value);
    to.push_back({std::string("twill:") + name, help, MetricType::Counter, {std::move(one)}});
  }

  void histogram(families& to, const char* name, const char* help,
                 const actors::histogram& from) const {
    auto one = metric();
    put_histogram(one, from);
    to.push_back({std::string("twill:") + name, help, MetricType::Histogram, {std::move(one)}});
  }

  void collect_gauges(families& to) const {
    const auto& s = stats_;
    gauge(to, "num_requests_running", "Requests in the running set", s.requests_running);
    gauge(to, "num_requests_waiting", "Requests waiting to be admitted", s.requests_waiting);
    const double share = s.kv_blocks_total > 0 ? static_cast<double>(s.kv_blocks_used) /
                                                     static_cast<double>(s.kv_blocks_total)
                                               : 0.0;
    gauge(to, "kv_cache_usage_perc", "Share of KV blocks in use, 0 to 1", share);
    gauge(to, "kv_blocks_used", "KV blocks in use", static_cast<double>(s.kv_blocks_used));
    gauge(to, "kv_blocks_total", "KV blocks there are", static_cast<double>(s.kv_blocks_total));
    gauge(to, "cache_config_info", "Shape of the KV cache", 1,
          {{"block_size", std::to_string(s.kv_block_tokens)},
           {"num_gpu_blocks", std::to_string(s.kv_blocks_total)}});
    gauge(to, "device_memory_used_bytes", "Device memory that tensors hold",
          static_cast<double>(s.device_memory_used_bytes));
  }

  void collect_tiers(families& to) const {
    const auto& s = stats_;
    gauge(to, "kv_host_blocks", "KV blocks in host memory", static_cast<double>(s.kv_host_blocks));
    gauge(to, "kv_disk_blocks", "KV blocks on disk", static_cast<double>(s.kv_disk_blocks));
    counter(to, "kv_host_hits_total", "KV blocks that came back from host memory", s.kv_host_hits);
    counter(to, "kv_disk_hits_total", "KV blocks that came back from disk", s.kv_disk_hits);
    counter(to, "kv_spilled_bytes_total", "Bytes of KV blocks that left the device",
            s.kv_spilled_bytes);
    counter(to, "kv_host_read_bytes_total", "Bytes of KV blocks that came back from host memory",
            s.kv_host_read_bytes);
    counter(to, "kv_disk_read_bytes_total", "Bytes of KV blocks read from disk",
            s.kv_disk_read_bytes);
    counter(to, "kv_disk_written_bytes_total", "Bytes of KV blocks written to disk",
            s.kv_disk_written_bytes);
    counter(to, "kv_tier_failures_total", "Reads and writes of KV blocks that failed",
            s.kv_tier_failures);
    counter(to, "kv_tier_dropped_total", "KV blocks for which no tier had room in time",
            s.kv_tier_dropped);
    counter(to, "kv_fetches_refused_total",
            "Fetches of KV that would have taken longer than computing it", s.kv_fetches_refused);
  }

  void collect_counters(families& to) const {
    const auto& s = stats_;
    counter(to, "num_preemptions_total", "Sequences preempted", s.preemptions);
    counter(to, "prompt_tokens_total", "Prompt tokens processed", s.prompt_tokens);
    counter(to, "generation_tokens_total", "Tokens generated", s.generation_tokens);
    counter(to, "prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache",
            s.prefix_cache_queries);
    counter(to, "prefix_cache_hits_total", "Prompt tokens whose KV the prefix cache had",
            s.prefix_cache_hits);
    if (s.kv_tiers) collect_tiers(to);
    counter(to, "engine_steps_total", "Forward passes", s.steps);
    counter(to, "executor_restarts_total", "Times the executor was restarted", s.executor_restarts);
    MetricFamily finished{"twill:request_success_total",
                          "Requests by the reason they ended",
                          MetricType::Counter,
                          {}};
    const std::pair<const char*, std::uint64_t> reasons[] = {{"stop", s.finished_stop},
                                                             {"length", s.finished_length},
                                                             {"abort", s.finished_abort},
                                                             {"error", s.finished_error}};
    for (const auto& [reason, count] : reasons) {
      auto one = metric({{"finished_reason", reason}});
      one.counter.value = static_cast<double>(count);
      finished.metric.push_back(std::move(one));
    }
    to.push_back(std::move(finished));
  }

  void collect_histograms(families& to) const {
    const auto& s = stats_;
    histogram(to, "time_to_first_token_seconds", "Arrival to first token",
              s.time_to_first_token_seconds);
    histogram(to, "inter_token_latency_seconds", "Time between tokens of a sequence",
              s.inter_token_latency_seconds);
    histogram(to, "time_per_output_token_seconds", "Alias of inter_token_latency_seconds",
              s.inter_token_latency_seconds);
    histogram(to, "e2e_request_latency_seconds", "Arrival to last token",
              s.e2e_request_latency_seconds);
    histogram(to, "request_queue_time_seconds", "Arrival to admission",
              s.request_queue_time_seconds);
    histogram(to, "request_prefill_time_seconds", "Admission to first token",
              s.request_prefill_time_seconds);
    histogram(to, "request_decode_time_seconds", "First to last token",
              s.request_decode_time_seconds);
    histogram(to, "request_prompt_tokens", "Prompt tokens per request", s.request_prompt_tokens);
    histogram(to, "request_generation_tokens", "Generated tokens per request",
              s.request_generation_tokens);
    histogram(to, "iteration_tokens_total", "Tokens per forward pass", s.iteration_tokens);
    histogram(to, "decode_step_seconds", "Time of forward passes that only decode",
              s.decode_step_seconds);
    histogram(to, "prefill_step_seconds", "Time of forward passes that only read prompts",
              s.prefill_step_seconds);
    histogram(to, "mixed_step_seconds", "Time of forward passes that do both",
              s.mixed_step_seconds);
  }

  const actors::engine_stats& stats_;
  labels labels_;
};

/// Turns what is known of each tenant into metric families: one metric for each of them.
class tenant_families {
public:
  explicit tenant_families(std::vector<actors::tenant_stats> all) : all_(std::move(all)) {}

  std::vector<MetricFamily> collect() const {
    using stats = actors::tenant_stats;
    std::vector<MetricFamily> to;
    gauge(to, "requests_waiting", "Requests that are queued and have no token",
          &stats::requests_waiting);
    gauge(to, "requests_running", "Requests that have a token and are not over",
          &stats::requests_running);
    counter(to, "prompt_tokens_total", "Prompt tokens of requests that have a token",
            &stats::prompt_tokens);
    counter(to, "cached_prompt_tokens_total", "Those of them whose KV was cached",
            &stats::cached_prompt_tokens);
    counter(to, "generation_tokens_total", "Tokens generated for requests that are over",
            &stats::generation_tokens);
    finished(to);
    histogram(to, "time_to_first_token_seconds", "Arrival to first token",
              &stats::time_to_first_token_seconds);
    histogram(to, "time_per_output_token_seconds", "Mean time between tokens of a request",
              &stats::time_per_output_token_seconds);
    histogram(to, "e2e_request_latency_seconds", "Arrival to last token",
              &stats::e2e_request_latency_seconds);
    histogram(to, "request_queue_time_seconds", "Arrival to admission",
              &stats::request_queue_time_seconds);
    return to;
  }

private:
  /// `fill` sets the value of one tenant's metric.
  template <class Fill>
  void family(families& to, const char* name, const char* help, MetricType type, Fill fill) const {
    MetricFamily made{std::string("twill:tenant_") + name, help, type, {}};
    for (const auto& one : all_) {
      ClientMetric metric;
      metric.label = {{"tenant", one.tenant}, {"model_name", one.model}};
      fill(metric, one);
      made.metric.push_back(std::move(metric));
    }
    to.push_back(std::move(made));
  }
  template <class Member>
  void gauge(families& to, const char* name, const char* help, Member member) const {
    family(to, name, help, MetricType::Gauge, [&](ClientMetric& metric, const auto& one) {
      metric.gauge.value = static_cast<double>(one.*member);
    });
  }
  template <class Member>
  void counter(families& to, const char* name, const char* help, Member member) const {
    family(to, name, help, MetricType::Counter, [&](ClientMetric& metric, const auto& one) {
      metric.counter.value = static_cast<double>(one.*member);
    });
  }
  template <class Member>
  void histogram(families& to, const char* name, const char* help, Member member) const {
    family(to, name, help, MetricType::Histogram,
           [&](ClientMetric& metric, const auto& one) { put_histogram(metric, one.*member); });
  }
  void finished(families& to) const {
    MetricFamily made{
        "twill:tenant_requests_total", "Requests by how they ended", MetricType::Counter, {}};
    for (const auto& one : all_)
      for (const auto& [reason, count] : one.finished) {
        ClientMetric metric;
        metric.label = {
            {"tenant", one.tenant}, {"model_name", one.model}, {"finished_reason", reason}};
        metric.counter.value = static_cast<double>(count);
        made.metric.push_back(std::move(metric));
      }
    to.push_back(std::move(made));
  }

  std::vector<actors::tenant_stats> all_;
};

families engine_families(const actors::engine_port& engine, std::int64_t open_sockets) {
  const auto models = engine.stats_of_models();
  families all;
  for (const auto& model : models) {
    const model_metrics metrics(model);
    auto own = metrics.collect();
    if (all.empty()) {
      all = std::move(own);
      metrics.collect_process(all, open_sockets);
      continue;
    }
    // A model that has not been loaded has no families of KV tiers.
    for (auto& family : own) {
      const auto same = std::find_if(
          all.begin(), all.end(), [&](const MetricFamily& one) { return one.name == family.name; });
      if (same == all.end())
        all.push_back(std::move(family));
      else
        std::move(family.metric.begin(), family.metric.end(), std::back_inserter(same->metric));
    }
  }
  return all;
}

std::string text_of(const std::vector<MetricFamily>& families) {
  return prometheus::TextSerializer().prometheus::Serializer::Serialize(families);
}

} // namespace

std::int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t total_pages = 0;
  std::int64_t resident_pages = 0;
  statm >> total_pages >> resident_pages;
  return resident_pages * ::sysconf(_SC_PAGESIZE);
}

std::string metrics_text(const actors::engine_port& engine, std::int64_t open_sockets) {
  return text_of(engine_families(engine, open_sockets));
}

std::string admin_metrics_text(const actors::engine_port& engine, std::int64_t open_sockets) {
  auto all = engine_families(engine, open_sockets);
  for (auto& family : tenant_families(engine.tenants()).collect())
    all.push_back(std::move(family));
  return text_of(all);
}

} // namespace twill::net
