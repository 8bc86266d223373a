#include "net/metric_aliases.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

namespace twill::net {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using families = std::vector<MetricFamily>;

/// A family's name without our prefix, and its other name without the other prefix.
struct other_name {
  const char* ours;
  const char* theirs;
};

/// vLLM's names of twill's metric families. Where vLLM has changed a name, all its names are
/// listed, because dashboards use all of them.
constexpr other_name vllm_names[] = {
    {"num_requests_running", "num_requests_running"},
    {"num_requests_waiting", "num_requests_waiting"},
    {"kv_cache_usage_perc", "kv_cache_usage_perc"},
    {"kv_cache_usage_perc", "gpu_cache_usage_perc"},
    {"cache_config_info", "cache_config_info"},
    {"num_preemptions_total", "num_preemptions_total"},
    {"prompt_tokens_total", "prompt_tokens_total"},
    {"generation_tokens_total", "generation_tokens_total"},
    {"prefix_cache_queries_total", "prefix_cache_queries_total"},
    {"prefix_cache_queries_total", "gpu_prefix_cache_queries_total"},
    {"prefix_cache_hits_total", "prefix_cache_hits_total"},
    {"prefix_cache_hits_total", "gpu_prefix_cache_hits_total"},
    {"request_success_total", "request_success_total"},
    {"time_to_first_token_seconds", "time_to_first_token_seconds"},
    {"inter_token_latency_seconds", "inter_token_latency_seconds"},
    {"inter_token_latency_seconds", "time_per_output_token_seconds"},
    {"request_time_per_output_token_seconds", "request_time_per_output_token_seconds"},
    {"e2e_request_latency_seconds", "e2e_request_latency_seconds"},
    {"request_queue_time_seconds", "request_queue_time_seconds"},
    {"request_prefill_time_seconds", "request_prefill_time_seconds"},
    {"request_decode_time_seconds", "request_decode_time_seconds"},
    {"request_inference_time_seconds", "request_inference_time_seconds"},
    {"request_prompt_tokens", "request_prompt_tokens"},
    {"request_generation_tokens", "request_generation_tokens"},
    {"request_max_num_generation_tokens", "request_max_num_generation_tokens"},
    {"request_params_n", "request_params_n"},
    {"request_params_max_tokens", "request_params_max_tokens"},
    {"iteration_tokens", "iteration_tokens_total"},
};

/// The families whose twill 0.1 name differs in more than the prefix `twill:`.
constexpr other_name older_names[] = {
    {"kv_blocks", "kv_blocks_total"},
    {"device_memory_reserved_bytes", "device_memory_used_bytes"},
    {"iteration_tokens", "iteration_tokens_total"},
    {"inter_token_latency_seconds", "time_per_output_token_seconds"},
};

const MetricFamily* find_family(const families& all, const char* name) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const MetricFamily& one) {
    return one.name == std::string(our_prefix) + name;
  });
  return found == all.end() ? nullptr : &*found;
}

/// Adds the share of looked-up prompt tokens whose KV was cached, since the start. vLLM published
/// this ratio before it had counters of the looked-up and of the cached tokens.
void add_hit_rate(families& all) {
  const auto* queries = find_family(all, "prefix_cache_queries_total");
  const auto* hits = find_family(all, "prefix_cache_hits_total");
  if (queries == nullptr || hits == nullptr) return;
  MetricFamily made{"vllm:gpu_prefix_cache_hit_rate",
                    "Share of looked-up prompt tokens that were cached, 0 to 1",
                    MetricType::Gauge,
                    {}};
  for (std::size_t i = 0; i < queries->metric.size(); ++i) {
    ClientMetric one;
    one.label = queries->metric[i].label;
    const double asked = queries->metric[i].counter.value;
    one.gauge.value = asked > 0 ? hits->metric[i].counter.value / asked : 0;
    made.metric.push_back(std::move(one));
  }
  all.push_back(std::move(made));
}

/// Adds the metric of LoRA adapters, because routers look for it. The metric lists none, since this
/// server has no adapters.
void add_no_adapters(families& all) {
  const auto* queries = find_family(all, "prefix_cache_queries_total");
  if (queries == nullptr) return;
  MetricFamily made{
      "vllm:lora_requests_info", "Adapters of requests: there are none", MetricType::Gauge, {}};
  for (const auto& model : queries->metric) {
    ClientMetric one;
    one.label = model.label;
    one.label.push_back({"max_lora", "0"});
    one.label.push_back({"waiting_lora_adapters", ""});
    one.label.push_back({"running_lora_adapters", ""});
    one.gauge.value = 1;
    made.metric.push_back(std::move(one));
  }
  all.push_back(std::move(made));
}

void add_as(families& all, const MetricFamily& ours, std::string name) {
  auto theirs = ours;
  theirs.name = std::move(name);
  all.push_back(std::move(theirs));
}

} // namespace

void add_vllm_names(families& all) {
  const auto ours = all;
  for (const auto& name : vllm_names)
    for (const auto& family : ours)
      if (family.name == std::string(our_prefix) + name.ours)
        add_as(all, family, std::string("vllm:") + name.theirs);
  add_hit_rate(all);
  add_no_adapters(all);
}

void add_older_names(families& all) {
  const std::string prefix = "twill:";
  const auto ours = all;
  for (const auto& family : ours) {
    const auto suffix = family.name.substr(our_prefix.size());
    bool renamed = false;
    for (const auto& name : older_names) {
      if (suffix != name.ours) continue;
      add_as(all, family, prefix + name.theirs);
      renamed = suffix != "inter_token_latency_seconds"; // vLLM published this family under both
                                                         // names
    }
    if (!renamed) add_as(all, family, prefix + suffix);
  }
}

} // namespace twill::net
