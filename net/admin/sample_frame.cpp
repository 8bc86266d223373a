#include <algorithm>
#include <cmath>
#include <tuple>

#include "net/admin/monitor.hpp"
#include "net/protocol/openai/models.hpp"

namespace twill::net {
namespace {

std::string_view name_of(actors::engine_state state) {
  using actors::engine_state;
  switch (state) {
  case engine_state::loading:
    return "loading";
  case engine_state::ready:
    return "ready";
  case engine_state::restarting:
    return "restarting";
  case engine_state::stalled:
    return "stalled";
  case engine_state::draining:
    return "draining";
  case engine_state::lost:
    return "lost";
  case engine_state::failed:
    break;
  }
  return "failed";
}

void write_counts(json_writer& json, std::string_view name, const actors::histogram& of) {
  json.key(name).begin_object().key("counts").begin_array();
  for (const auto count : of.counts)
    json.add(count);
  json.end_array().field("sum_s", of.sum).end_object();
}

std::string_view name_of(actors::stream_report::span_kind kind) {
  using kinds = actors::stream_report::span_kind;
  if (kind == kinds::from_disk) return "disk";
  return kind == kinds::from_host ? "host" : "compute";
}

/// Times of spans are written in whole microseconds since the beginning of the step.
void write_streamed(json_writer& json, const actors::stream_report& of) {
  const auto microseconds = [](float seconds) { return std::llround(1e6 * double(seconds)); };
  json.key("streamed").begin_object();
  json.field("device_bytes", of.device_bytes).field("host_bytes", of.host_bytes);
  json.field("disk_bytes", of.disk_bytes).field("host_read_bytes", of.host_read_bytes);
  json.field("disk_read_bytes", of.disk_read_bytes).field("waited_s", of.waited_s);
  json.field("step_s", of.step_s).key("spans").begin_array();
  for (const auto& span : of.spans)
    json.begin_array()
        .add(name_of(span.kind))
        .add(span.layer)
        .add(microseconds(span.begin_s))
        .add(microseconds(span.end_s))
        .end_array();
  json.end_array().end_object();
}

void write_stats(json_writer& json, const actors::engine_stats& s) {
  json.field("requests_running", s.requests_running)
      .field("requests_waiting", s.requests_waiting)
      .field("kv_blocks_used", s.kv_blocks_used)
      .field("kv_blocks_total", s.kv_blocks_total)
      .field("kv_block_tokens", s.kv_block_tokens)
      .field("kv_tiers", s.kv_tiers)
      .field("kv_host_blocks", s.kv_host_blocks)
      .field("kv_disk_blocks", s.kv_disk_blocks)
      .field("kv_block_bytes", s.kv_block_bytes)
      .field("kv_host_hits", s.kv_host_hits)
      .field("kv_disk_hits", s.kv_disk_hits)
      .field("device_memory_reserved_bytes", s.device_memory_reserved_bytes)
      .field("device_memory_touched_bytes", s.device_memory_touched_bytes)
      .field("prompt_tokens", s.prompt_tokens)
      .field("generation_tokens", s.generation_tokens)
      .field("prefix_cache_queries", s.prefix_cache_queries)
      .field("prefix_cache_hits", s.prefix_cache_hits)
      .field("preemptions", s.preemptions)
      .field("steps", s.steps)
      .field("executor_restarts", s.executor_restarts);
  json.key("finished")
      .begin_object()
      .field("stop", s.finished_stop)
      .field("length", s.finished_length)
      .field("abort", s.finished_abort)
      .field("error", s.finished_error)
      .end_object();
  if (s.streamed != nullptr) write_streamed(json, *s.streamed);
  write_counts(json, "first_token", s.time_to_first_token_seconds);
  write_counts(json, "gap", s.inter_token_latency_seconds);
}

void write_models(json_writer& json, const server_snapshot& of) {
  json.key("models").begin_array();
  for (std::size_t i = 0; i < of.models.size() && i < max_shown_models; ++i) {
    const auto& model = of.models[i];
    json.begin_object().field("model", model.id);
    json.field("state", net::name_of(model.state)).field("detail", model.detail);
    json.field("pinned", model.pinned);
    json.field("need_bytes", model.need_bytes).field("granted_bytes", model.granted_bytes);
    json.field("requests_for_load", model.requests_waiting);
    const auto stats = std::find_if(of.stats.begin(), of.stats.end(),
                                    [&](const auto& one) { return one.model == model.id; });
    if (stats != of.stats.end()) write_stats(json, stats->stats);
    json.end_object();
  }
  json.end_array();
  const auto shown = std::min(of.models.size(), max_shown_models);
  json.field("models_left_out", of.models.size() - shown);
}

void write_tenants(json_writer& json, const server_snapshot& of) {
  std::vector<const actors::tenant_stats*> order;
  for (const auto& one : of.tenants)
    order.push_back(&one);
  const auto busy = [](const actors::tenant_stats& one) {
    return std::tuple(one.requests_running + one.requests_waiting,
                      one.prompt_tokens + one.generation_tokens);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const auto* a, const auto* b) { return busy(*a) > busy(*b); });
  const auto shown = std::min(order.size(), max_shown_tenants);
  json.key("tenants").begin_array();
  for (std::size_t i = 0; i < shown; ++i) {
    const auto& one = *order[i];
    json.begin_object().field("tenant", one.tenant).field("model", one.model);
    json.field("requests_running", one.requests_running);
    json.field("requests_waiting", one.requests_waiting);
    json.field("prompt_tokens", one.prompt_tokens);
    json.field("cached_prompt_tokens", one.cached_prompt_tokens);
    json.field("generation_tokens", one.generation_tokens);
    json.key("finished").begin_object();
    for (const auto& [reason, n] : one.finished)
      json.field(reason, n);
    json.end_object().end_object();
  }
  json.end_array().field("tenants_left_out", order.size() - shown);
}

} // namespace

std::string sample_frame(const server_snapshot& of) {
  std::string text;
  json_writer json(text);
  json.begin_object().field("type", "sample").field("number", of.number);
  json.field("state", name_of(of.state)).field("detail", of.detail);
  write_bounds(json, of.stats);
  json.key("row");
  write_row(json, of.row, {});
  write_models(json, of);
  write_tenants(json, of);
  json.end_object();
  return text;
}

} // namespace twill::net
