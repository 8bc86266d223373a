#include "net/metrics.hpp"

#include <fstream>
#include <functional>
#include <limits>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include "config/base/log.hpp"
#include "net/metric_aliases.hpp"
#include "net/tracing/tracer.hpp"

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

/// Writes Prometheus metric families that have one metric for each owner: each model, or each pair
/// of a tenant and a model. The value of a metric is a member of the owner's counters or a function
/// of the counters.
template <class Stats>
class family_writer {
public:
  struct owner {
    labels names;
    const Stats* stats;
  };
  family_writer(families& to, std::string prefix, std::vector<owner> owners)
      : to_(to), prefix_(std::move(prefix)), owners_(std::move(owners)) {}

  template <class Value>
  void gauge(const char* name, const char* help, Value value) const {
    family(name, help, MetricType::Gauge, [&](const Stats& stats, const auto& add) {
      add({}).gauge.value = static_cast<double>(std::invoke(value, stats));
    });
  }
  template <class Value>
  void counter(const char* name, const char* help, Value value) const {
    family(name, help, MetricType::Counter, [&](const Stats& stats, const auto& add) {
      add({}).counter.value = static_cast<double>(std::invoke(value, stats));
    });
  }
  template <class Value>
  void histogram(const char* name, const char* help, Value value) const {
    family(name, help, MetricType::Histogram, [&](const Stats& stats, const auto& add) {
      put_histogram(add({}), std::invoke(value, stats));
    });
  }
  /// Adds one metric family. `fill` is called once for each owner (a model, or a pair of a tenant
  /// and a model). It gets the owner's counters and a function that adds a metric with further
  /// labels.
  template <class Fill>
  void family(const char* name, const char* help, MetricType type, Fill fill) const {
    MetricFamily made{prefix_ + name, help, type, {}};
    for (const auto& one : owners_)
      fill(*one.stats, [&](const labels& extra) -> ClientMetric& {
        auto& metric = made.metric.emplace_back();
        metric.label = one.names;
        metric.label.insert(metric.label.end(), extra.begin(), extra.end());
        return metric;
      });
    to_.push_back(std::move(made));
  }

private:
  families& to_;
  std::string prefix_;
  std::vector<owner> owners_;
};

using stats = actors::engine_stats;
using model_families = family_writer<stats>;

void write_gauges(const model_families& to) {
  to.gauge("num_requests_running", "Requests in the running set", &stats::requests_running);
  to.gauge("num_requests_waiting", "Requests waiting to be admitted", &stats::requests_waiting);
  to.gauge("kv_cache_usage_perc", "Share of KV blocks in use, 0 to 1", [](const stats& s) {
    return s.kv_blocks_total > 0
               ? static_cast<double>(s.kv_blocks_used) / static_cast<double>(s.kv_blocks_total)
               : 0.0;
  });
  to.gauge("kv_blocks_used", "KV blocks in use", &stats::kv_blocks_used);
  to.gauge("kv_blocks", "KV blocks there are", &stats::kv_blocks_total);
  to.family("cache_config_info", "Shape of the KV cache", MetricType::Gauge,
            [](const stats& s, const auto& add) {
              add({{"block_size", std::to_string(s.kv_block_tokens)},
                   {"num_gpu_blocks", std::to_string(s.kv_blocks_total)}})
                  .gauge.value = 1;
            });
  to.gauge("device_memory_reserved_bytes",
           "Device memory reserved for weights, KV and steps; on a host address space",
           &stats::device_memory_reserved_bytes);
  to.gauge("device_memory_touched_bytes",
           "Reserved device memory that is taken, since it was written",
           &stats::device_memory_touched_bytes);
  to.gauge("device_weights_bytes", "Reserved device memory that holds weights",
           &stats::device_weights_bytes);
  to.gauge("device_kv_bytes", "Reserved device memory that holds KV blocks", [](const stats& s) {
    return static_cast<double>(s.kv_block_bytes * s.kv_blocks_total);
  });
}

void write_tiers(const model_families& to) {
  to.gauge("kv_host_blocks", "KV blocks in host memory", &stats::kv_host_blocks);
  to.gauge("kv_disk_blocks", "KV blocks on disk", &stats::kv_disk_blocks);
  to.counter("kv_host_hits_total", "KV blocks that came back from host memory",
             &stats::kv_host_hits);
  to.counter("kv_disk_hits_total", "KV blocks that came back from disk", &stats::kv_disk_hits);
  to.counter("kv_spilled_bytes_total", "Bytes of KV blocks that left the device",
             &stats::kv_spilled_bytes);
  to.counter("kv_host_read_bytes_total", "Bytes of KV blocks that came back from host memory",
             &stats::kv_host_read_bytes);
  to.counter("kv_disk_read_bytes_total", "Bytes of KV blocks read from disk",
             &stats::kv_disk_read_bytes);
  to.counter("kv_disk_written_bytes_total", "Bytes of KV blocks written to disk",
             &stats::kv_disk_written_bytes);
  to.counter("kv_tier_failures_total", "Reads and writes of KV blocks that failed",
             &stats::kv_tier_failures);
  to.counter("kv_tier_dropped_total", "KV blocks for which no tier had room in time",
             &stats::kv_tier_dropped);
  to.counter("kv_fetches_refused_total",
             "Fetches of KV that would have taken longer than computing it",
             &stats::kv_fetches_refused);
}

void write_token_counters(const model_families& to) {
  to.counter("num_preemptions_total", "Sequences preempted", &stats::preemptions);
  to.counter("prompt_tokens_total", "Prompt tokens processed", &stats::prompt_tokens);
  to.counter("generation_tokens_total", "Tokens generated", &stats::generation_tokens);
  to.counter("prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache",
             &stats::prefix_cache_queries);
  to.counter("prefix_cache_hits_total", "Prompt tokens whose KV the prefix cache had",
             &stats::prefix_cache_hits);
}

void write_step_counters(const model_families& to) {
  to.counter("engine_steps_total", "Forward passes", &stats::steps);
  to.counter("executor_restarts_total", "Times the executor was restarted",
             &stats::executor_restarts);
  to.family("request_success_total", "Requests by the reason they ended", MetricType::Counter,
            [](const stats& s, const auto& add) {
              const std::pair<const char*, std::uint64_t> reasons[] = {
                  {"stop", s.finished_stop},
                  {"length", s.finished_length},
                  {"abort", s.finished_abort},
                  {"error", s.finished_error}};
              for (const auto& [reason, count] : reasons)
                add({{"finished_reason", reason}}).counter.value = static_cast<double>(count);
            });
}

void write_histograms(const model_families& to) {
  to.histogram("time_to_first_token_seconds", "Arrival to first token",
               &stats::time_to_first_token_seconds);
  to.histogram("inter_token_latency_seconds", "Time between tokens of a sequence",
               &stats::inter_token_latency_seconds);
  to.histogram("e2e_request_latency_seconds", "Arrival to last token",
               &stats::e2e_request_latency_seconds);
  to.histogram("request_queue_time_seconds", "Arrival to admission",
               &stats::request_queue_time_seconds);
  to.histogram("request_prefill_time_seconds", "Admission to first token",
               &stats::request_prefill_time_seconds);
  to.histogram("request_decode_time_seconds", "First to last token",
               &stats::request_decode_time_seconds);
  to.histogram("request_inference_time_seconds", "Admission to last token",
               &stats::request_inference_time_seconds);
  to.histogram("request_time_per_output_token_seconds",
               "Mean time between tokens of a request with one choice",
               &stats::request_time_per_output_token_seconds);
  to.histogram("request_prompt_tokens", "Prompt tokens per request", &stats::request_prompt_tokens);
  to.histogram("request_generation_tokens", "Generated tokens per request",
               &stats::request_generation_tokens);
  to.histogram("request_max_num_generation_tokens",
               "Generated tokens of the longest choice of a request",
               &stats::request_max_num_generation_tokens);
  to.histogram("request_params_n", "Choices that a request asks for", &stats::request_params_n);
  to.histogram("request_params_max_tokens", "max_tokens of requests that name it",
               &stats::request_params_max_tokens);
  to.histogram("iteration_tokens", "Tokens per forward pass", &stats::iteration_tokens);
  to.histogram("decode_step_seconds", "Time of forward passes that only decode",
               &stats::decode_step_seconds);
  to.histogram("prefill_step_seconds", "Time of forward passes that only read prompts",
               &stats::prefill_step_seconds);
  to.histogram("mixed_step_seconds", "Time of forward passes that do both",
               &stats::mixed_step_seconds);
}

families engine_families(const metrics_sources& from) {
  const auto models = from.engine.stats_of_models();
  families all;
  if (models.empty()) return all;
  std::vector<model_families::owner> owners, with_tiers;
  for (const auto& model : models) {
    owners.push_back({{{"engine", "0"}, {"model_name", model.model}}, &model.stats});
    if (model.stats.kv_tiers) with_tiers.push_back(owners.back());
  }
  const model_families to(all, std::string(our_prefix), owners);
  write_gauges(to);
  write_token_counters(to);
  // A model that has not been loaded has no tiers.
  if (!with_tiers.empty())
    write_tiers(model_families(all, std::string(our_prefix), std::move(with_tiers)));
  write_step_counters(to);
  write_histograms(to);
  // Metrics that belong to no model carry the labels of the first model, for compatibility.
  const model_families process(all, std::string(our_prefix), {owners.front()});
  const auto memory = read_process_memory();
  process.gauge("process_resident_memory_bytes", "Resident memory of the process",
                [&](const stats&) { return memory.resident_bytes; });
  process.gauge("process_device_memory_bytes",
                "Resident memory of the process that is touched device memory: none beside a GPU",
                [&](const stats&) { return own_device_bytes(models); });
  process.gauge("process_mapped_file_bytes",
                "Resident memory of the process that is pages of mapped files, such as a model's",
                [&](const stats&) { return memory.mapped_file_bytes; });
  process.gauge("open_sockets", "Open client connections",
                [&](const stats&) { return from.open_sockets; });
  process.gauge("stored_response_bytes", "Room that stored responses take",
                [&](const stats&) { return from.stored_bytes; });
  process.counter("stored_response_write_failures_total",
                  "Writes of stored responses that the disk did not take",
                  [&](const stats&) { return from.stored_write_failures; });
  return all;
}

void write_tenants(families& all, const std::vector<actors::tenant_stats>& tenants) {
  using tenant = actors::tenant_stats;
  std::vector<family_writer<tenant>::owner> owners;
  for (const auto& one : tenants)
    owners.push_back({{{"tenant", one.tenant}, {"model_name", one.model}}, &one});
  const family_writer<tenant> to(all, std::string(our_prefix) + "tenant_", std::move(owners));
  to.gauge("requests_waiting", "Requests that are queued and have no token",
           &tenant::requests_waiting);
  to.gauge("requests_running", "Requests that have a token and are not over",
           &tenant::requests_running);
  to.counter("prompt_tokens_total",
             "Prompt tokens of requests that have a token, were scored or cancelled",
             &tenant::prompt_tokens);
  to.counter("cached_prompt_tokens_total", "Those of them whose KV was cached",
             &tenant::cached_prompt_tokens);
  to.counter("generation_tokens_total", "Tokens generated for requests that are over",
             &tenant::generation_tokens);
  to.family("requests_total", "Requests by how they ended", MetricType::Counter,
            [](const tenant& one, const auto& add) {
              for (const auto& [reason, count] : one.finished)
                add({{"finished_reason", reason}}).counter.value = static_cast<double>(count);
            });
  to.histogram("time_to_first_token_seconds", "Arrival to first token",
               &tenant::time_to_first_token_seconds);
  to.histogram("time_per_output_token_seconds", "Mean time between tokens of a request",
               &tenant::time_per_output_token_seconds);
  to.histogram("e2e_request_latency_seconds", "Arrival to last token",
               &tenant::e2e_request_latency_seconds);
  to.histogram("request_queue_time_seconds", "Arrival to admission",
               &tenant::request_queue_time_seconds);
}

MetricFamily mailbox_family(const actors::engine_port& engine) {
  MetricFamily made{std::string(our_prefix) + "actor_mailbox_depth",
                    "Messages that wait for an actor or are under way",
                    MetricType::Gauge,
                    {}};
  for (const auto& one : engine.mailboxes()) {
    ClientMetric metric;
    metric.label = {{"model_name", one.model}, {"actor", one.actor}};
    metric.gauge.value = static_cast<double>(one.depth);
    made.metric.push_back(std::move(metric));
  }
  return made;
}

void add_counter(families& all, const char* name, const char* help, std::uint64_t value) {
  ClientMetric one;
  one.counter.value = static_cast<double>(value);
  all.push_back({name, help, MetricType::Counter, {std::move(one)}});
}

void add_traces(families& all, const tracer& traces) {
  const auto counts = traces.read();
  add_counter(all, "twill_trace_spans_sent_total", "Spans that the collector took", counts.sent);
  add_counter(all, "twill_trace_spans_dropped_total",
              "Spans that the collector did not take in time", counts.dropped);
}

std::string metrics_text(const metrics_sources& from, bool tenants) {
  auto all = engine_families(from);
  if (tenants) {
    write_tenants(all, from.engine.tenants());
    all.push_back(mailbox_family(from.engine));
  }
  add_counter(all, "twill_log_lines_dropped_total",
              "Lines of the log that standard error did not take in time",
              log::delivered().dropped_lines);
  if (from.traces != nullptr) add_traces(all, *from.traces);
  if (from.compat == "vllm") add_vllm_names(all);
  if (from.compat == "0.1") add_older_names(all);
  return prometheus::TextSerializer().prometheus::Serializer::Serialize(all);
}

} // namespace

process_memory read_process_memory() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t total_pages = 0, resident_pages = 0, file_pages = 0;
  statm >> total_pages >> resident_pages >> file_pages;
  const std::int64_t page = ::sysconf(_SC_PAGESIZE);
  return {resident_pages * page, file_pages * page};
}

std::int64_t own_device_bytes(const std::vector<actors::model_stats>& models) {
  std::int64_t all = 0;
  for (const auto& one : models)
    if (one.stats.device_is_host) all += one.stats.device_memory_touched_bytes;
  return all;
}

std::string metrics_text(const metrics_sources& from) {
  return metrics_text(from, false);
}

std::string admin_metrics_text(const metrics_sources& from) {
  return metrics_text(from, true);
}

} // namespace twill::net
