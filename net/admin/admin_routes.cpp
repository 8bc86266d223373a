#include "net/admin/admin_routes.hpp"

#include "net/admin/scheduler_state.hpp"
#include "net/endpoints.hpp"
#include "net/http/system_routes.hpp"
#include "net/metrics.hpp"
#include "net/protocol/json/json_writer.hpp"

namespace twill::net {

http_answer list_admin_routes(request_scope& scope) {
  std::string body;
  json_writer json(body);
  json.begin_object().key("routes").begin_array();
  for (const auto& row : endpoints(scope.request.listener)) {
    json.begin_object().field("method", name_of(row.method)).field("path", row.path);
    json.field("websocket", std::holds_alternative<dialect_opener>(row.action)).end_object();
  }
  json.end_array().end_object();
  return http_reply{200, std::move(body)};
}

http_answer reload(request_scope& scope) {
  if (!scope.context.reload)
    return error_reply({errc::conflict, "this server has no configuration to read anew", ""});
  return slow_reply([&work = scope.context.reload] {
    auto [done, report] = work();
    return http_reply{done ? 200 : 400, std::move(report)};
  });
}

namespace {

http_reply state_of(const server_context& context) {
  const auto snapshots = ask_schedulers(context.engine);
  std::string body;
  json_writer json(body);
  json.begin_object().field("detail", context.engine.state_detail());
  json.field("open_sockets", context.sockets.count());
  const auto models = context.engine.stats_of_models();
  const auto memory = read_process_memory();
  json.key("process").begin_object().field("resident_bytes", memory.resident_bytes);
  json.field("device_memory_bytes", own_device_bytes(models));
  json.field("mapped_file_bytes", memory.mapped_file_bytes).end_object();
  json.key("models").begin_array();
  for (const auto& [model, stats] : models) {
    json.begin_object().field("model", model);
    json.field("requests_running", stats.requests_running);
    json.field("requests_waiting", stats.requests_waiting);
    json.field("kv_blocks_used", stats.kv_blocks_used);
    json.field("kv_blocks_total", stats.kv_blocks_total);
    json.field("kv_block_tokens", stats.kv_block_tokens);
    json.field("kv_host_blocks", stats.kv_host_blocks);
    json.field("kv_disk_blocks", stats.kv_disk_blocks);
    json.field("device_memory_reserved_bytes", stats.device_memory_reserved_bytes);
    json.field("device_memory_touched_bytes", stats.device_memory_touched_bytes);
    json.field("device_weights_bytes", stats.device_weights_bytes);
    json.field("device_outside_bytes", stats.device_outside_bytes);
    json.field("device_kv_bytes", stats.kv_block_bytes * stats.kv_blocks_total);
    json.field("prompt_tokens", stats.prompt_tokens);
    json.field("generation_tokens", stats.generation_tokens);
    json.field("steps", stats.steps).field("preemptions", stats.preemptions);
    json.field("executor_restarts", stats.executor_restarts).end_object();
  }
  json.end_array().key("tenants").begin_array();
  for (const auto& one : context.engine.tenants()) {
    json.begin_object().field("tenant", one.tenant).field("model", one.model);
    json.field("requests_waiting", one.requests_waiting);
    json.field("requests_running", one.requests_running);
    json.field("prompt_tokens", one.prompt_tokens);
    json.field("cached_prompt_tokens", one.cached_prompt_tokens);
    json.field("generation_tokens", one.generation_tokens).key("finished").begin_object();
    for (const auto& [reason, n] : one.finished)
      json.field(reason, n);
    json.end_object().end_object();
  }
  add_scheduler_state(json.end_array(), snapshots, context.engine.mailboxes());
  json.end_object();
  return {200, std::move(body)};
}

} // namespace

/// The engine answers asynchronously, and the worker thread waits for the answer.
http_answer show_state(request_scope& scope) {
  return slow_reply([&context = scope.context] { return state_of(context); });
}

http_answer admin_metrics(request_scope& scope) {
  return http_reply{200, admin_metrics_text(metrics_of(scope.context)),
                    "text/plain; version=0.0.4; charset=utf-8"};
}

} // namespace twill::net
