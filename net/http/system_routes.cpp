#include "net/http/system_routes.hpp"

#include "config/base/log.hpp"
#include "net/http/docs_page.hpp"
#include "net/http/openapi.hpp"
#include "net/metrics.hpp"
#include "net/protocol/json/json_writer.hpp"
#include "net/stored/stored_service.hpp"

namespace twill::net {
namespace {

/// Returns the body of the reply of a server that is ready. If the log cannot be written, the body
/// says so; the server is ready nevertheless, because requests are answered as before.
std::string ready_body() {
  std::string out;
  json_writer json(out);
  json.begin_object().field("status", "ready");
  if (const auto log = log::delivered(); log.blocked)
    json.field("log", "standard error does not take the log: " + std::to_string(log.dropped_lines) +
                          " lines were dropped since the start; read it, or write it to a file");
  json.end_object();
  return out;
}

} // namespace

http_answer list_routes(request_scope&) {
  static const std::string page = routes_page();
  return http_reply{200, page, "text/html; charset=utf-8"};
}

http_answer docs(request_scope&) {
  static const std::string page = docs_page();
  return http_reply{200, page, "text/html; charset=utf-8"};
}

http_answer openapi(request_scope&) {
  static const std::string document = openapi_text();
  return http_reply{200, document};
}

http_answer health(request_scope&) {
  return http_reply{200, R"({"status":"ok"})"};
}

http_answer ready(request_scope& scope) {
  using actors::engine_state;
  const auto state = scope.context.draining ? engine_state::draining : scope.context.engine.state();
  if (state == engine_state::ready) return http_reply{200, ready_body()};
  if (state == engine_state::draining)
    return error_reply({actors::errc::shutting_down, "the server is shutting down", ""});
  const auto detail = scope.context.engine.state_detail();
  std::string reason = "the model cannot be served";
  if (state == engine_state::loading) reason = "the model is loading";
  if (state == engine_state::restarting) reason = "the model is restarted";
  if (state == engine_state::lost) reason = "the server ends";
  if (state == engine_state::stalled) reason = "the model does not answer";
  return error_reply(
      {actors::errc::not_ready, detail.empty() ? reason : reason + ": " + detail, ""});
}

metrics_sources metrics_of(const server_context& context) {
  return {context.engine, context.sockets.count(), context.current.get()->metrics_compat,
          context.traces, context.stored->bytes(), context.stored->write_failures()};
}

http_answer metrics(request_scope& scope) {
  return http_reply{200, metrics_text(metrics_of(scope.context)),
                    "text/plain; version=0.0.4; charset=utf-8"};
}

http_answer version(request_scope& scope) {
  std::string out;
  json_writer json(out);
  json.begin_object().field("version", TWILL_VERSION);
  if (const auto& name = scope.context.options.server.name; !name.empty()) json.field("name", name);
  json.end_object();
  return http_reply{200, std::move(out)};
}

} // namespace twill::net
