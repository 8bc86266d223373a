#include "net/http/worker_routes.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/kv_events/kv_publisher.hpp"
#include "net/protocol/json/json_writer.hpp"

namespace twill::net {
namespace {

bool has_no_weights(const actors::model_info& model) {
  return model.state == actors::model_state::asleep || model.state == actors::model_state::unloaded;
}

/// The first model, which serves requests that name no model.
std::optional<actors::model_info> first_model(const request_scope& scope) {
  auto all = scope.context.engine.models();
  if (all.empty()) return std::nullopt;
  return std::move(all.front());
}

http_reply no_model() {
  return error_reply({actors::errc::not_ready, "no model is known yet; retry later", ""});
}

/// Writes the names of the model, under the members in which SGLang and vLLM have them.
void add_names(json_writer& json, const actors::model_info& model) {
  json.field("model_path", model.id)
      .field("tokenizer_path", model.id)
      .field("served_model_name", model.id);
}

} // namespace

http_answer load(request_scope& scope) {
  const auto now = scope.context.engine.stats();
  std::string out;
  json_writer(out)
      .begin_object()
      .field("server_load", std::int64_t{now.requests_running} + now.requests_waiting)
      .end_object();
  return http_reply{200, std::move(out)};
}

http_answer load_of_ranks(request_scope& scope) {
  std::int64_t running = 0, waiting = 0, tokens = 0;
  for (const auto& [model, now] : scope.context.engine.stats_of_models()) {
    running += now.requests_running;
    waiting += now.requests_waiting;
    tokens += now.kv_blocks_used * now.kv_block_tokens;
  }
  std::string out;
  json_writer(out)
      .begin_array()
      .begin_object()
      .field("dp_rank", 0)
      .field("num_reqs", running + waiting)
      .field("num_waiting_reqs", waiting)
      .field("num_tokens", tokens)
      .end_object()
      .end_array();
  return http_reply{200, std::move(out)};
}

http_answer is_sleeping(request_scope& scope) {
  const auto all = scope.context.engine.models();
  const bool asleep = !all.empty() && std::all_of(all.begin(), all.end(), has_no_weights);
  std::string out;
  json_writer(out).begin_object().field("is_sleeping", asleep).end_object();
  return http_reply{200, std::move(out)};
}

http_answer kv_event_sources(request_scope& scope) {
  std::string out;
  json_writer json(out);
  json.begin_array();
  if (const auto* publisher = scope.context.kv_events; publisher != nullptr) {
    const auto& options = scope.context.options;
    const auto& events =
        options.models.empty() ? options.kv.events : options.models.front().kv_events;
    json.begin_object()
        .field("data_parallel_rank", 0)
        .field("endpoint", publisher->endpoint())
        .field("replay_endpoint", nullptr)
        .field("topic", events.topic)
        .end_object();
  }
  json.end_array();
  return http_reply{200, std::move(out)};
}

http_answer server_info(request_scope& scope) {
  const auto model = first_model(scope);
  if (!model.has_value()) return no_model();
  const auto& options = scope.context.options;
  actors::engine_stats now;
  for (const auto& one : scope.context.engine.stats_of_models())
    if (one.model == model->id) now = one.stats;
  std::string out;
  json_writer json(out);
  json.begin_object();
  add_names(json, *model);
  json.field("model_id", model->id).field("version", TWILL_VERSION);
  if (!options.server.name.empty()) json.field("instance_id", options.server.name);
  json.field("dp_size", 1)
      .field("context_length", model->max_model_len)
      .field("kv_block_size", now.kv_block_tokens)
      .field("max_total_tokens", now.kv_blocks_total * now.kv_block_tokens)
      .field("max_running_requests", options.scheduler.max_running)
      .end_object();
  return http_reply{200, std::move(out)};
}

http_answer model_info(request_scope& scope) {
  const auto model = first_model(scope);
  if (!model.has_value()) return no_model();
  std::string out;
  json_writer json(out);
  json.begin_object();
  add_names(json, *model);
  json.field("is_generation", true).field("model_type", model->family).end_object();
  return http_reply{200, std::move(out)};
}

} // namespace twill::net
