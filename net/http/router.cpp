#include "net/http/router.hpp"

#include <array>

#include "net/batch/batch_routes.hpp"
#include "net/http/landing_page.hpp"
#include "net/http/request_scope.hpp"
#include "net/metrics.hpp"
#include "net/protocol/json/json_parse.hpp"
#include "net/protocol/json/json_writer.hpp"
#include "net/protocol/openai/chat.hpp"
#include "net/protocol/openai/completions.hpp"
#include "net/protocol/openai/models.hpp"
#include "net/protocol/openai/responses_reply.hpp"
#include "net/protocol/openai/tokenize.hpp"

namespace twill::net {
namespace {

/// A parsed body with the model it names.
struct prepared {
  value body;
  actors::model_info model;
};

result<prepared> prepare(request_scope& scope) {
  auto body = parse_json(scope.request.body);
  if (!body.ok()) return fail(body.code());
  auto model = find_model(scope.context.engine, body.value());
  if (!model.ok()) return fail(model.code());
  return prepared{std::move(body).value(), std::move(model).value()};
}

template <class Parse>
http_answer generate(request_scope& scope, Parse parse) {
  auto ready = prepare(scope);
  if (!ready.ok()) return error_reply(ready.code());
  const codec_context context{ready.value().model, scope.context.options.limits,
                              scope.context.engine};
  result<call> generation = parse(ready.value().body, context);
  if (!generation.ok()) return error_reply(generation.code());
  for (auto& request : generation.value().requests) {
    request.tenant = scope.tenant;
    request.client_id = scope.request.request_id;
  }
  return std::move(generation).value();
}

http_answer completions(request_scope& scope) {
  return generate(scope, parse_completions);
}

http_answer chat(request_scope& scope) {
  return generate(scope, parse_chat);
}

http_answer responses(request_scope& scope) {
  return generate(scope, [&](const value& body, const codec_context& context) {
    return parse_responses(body, context, scope.context.responses, scope.tenant);
  });
}

template <class Make>
http_answer on_worker(request_scope& scope, Make make) {
  auto ready = prepare(scope);
  if (!ready.ok()) return error_reply(ready.code());
  auto shared = std::make_shared<prepared>(std::move(ready).value());
  return slow_reply([shared, make, &server = scope.context]() -> http_reply {
    const codec_context context{shared->model, server.options.limits, server.engine};
    auto body = make(shared->body, context);
    if (!body.ok()) return error_reply(body.code());
    return {200, std::move(body).value()};
  });
}

http_answer tokenize(request_scope& scope) {
  return on_worker(scope, tokenize_body);
}

http_answer detokenize(request_scope& scope) {
  return on_worker(scope, detokenize_body);
}

http_answer models(request_scope& scope) {
  return http_reply{200, models_body(scope.context.engine.models())};
}

http_answer health(request_scope&) {
  return http_reply{200, R"({"status":"ok"})"};
}

http_answer ready(request_scope& scope) {
  using actors::engine_state;
  const auto state = scope.context.draining ? engine_state::draining : scope.context.engine.state();
  if (state == engine_state::ready) return http_reply{200, R"({"status":"ready"})"};
  if (state == engine_state::draining)
    return error_reply({actors::errc::shutting_down, "the server is draining", ""});
  const auto detail = scope.context.engine.state_detail();
  const std::string reason =
      state == engine_state::loading ? "the model is loading" : "the model failed to load";
  return error_reply(
      {actors::errc::not_ready, detail.empty() ? reason : reason + ": " + detail, ""});
}

http_answer metrics(request_scope& scope) {
  return http_reply{200, metrics_text(scope.context.engine, scope.context.open_sockets),
                    "text/plain; version=0.0.4; charset=utf-8"};
}

http_answer version(request_scope&) {
  return http_reply{200, R"({"version":")" TWILL_VERSION R"("})"};
}

http_answer landing(request_scope&) {
  return http_reply{200, std::string(landing_page), "text/html; charset=utf-8"};
}

http_answer websocket_only(request_scope& scope) {
  return error_reply(
      {errc::upgrade_required, "GET " + scope.request.path + " must be a WebSocket handshake", ""});
}

struct entry {
  std::string_view path; ///< "*": one segment that is not empty
  route_handler get;
  route_handler post;
  bool open; ///< needs no API key
  route_handler erase = nullptr;
};

constexpr std::array<entry, 20> table = {{
    {"/", landing, nullptr, true},
    {"/health", health, nullptr, true},
    {"/ready", ready, nullptr, true},
    {"/metrics", metrics, nullptr, true},
    {"/version", version, nullptr, true},
    {"/v1/models", models, nullptr, false},
    {"/v1/completions", nullptr, completions, false},
    {"/v1/chat/completions", nullptr, chat, false},
    {"/v1/responses", websocket_only, responses, false},
    {"/v1/stream", websocket_only, nullptr, false},
    {"/tokenize", nullptr, tokenize, false},
    {"/detokenize", nullptr, detokenize, false},
    {"/v1/tokenize", nullptr, tokenize, false},
    {"/v1/detokenize", nullptr, detokenize, false},
    {"/v1/files", list_files, upload_file, false},
    {"/v1/files/*", show_file, nullptr, false, delete_file},
    {"/v1/files/*/content", file_content, nullptr, false},
    {"/v1/batches", list_batches, create_batch, false},
    {"/v1/batches/*", show_batch, nullptr, false},
    {"/v1/batches/*/cancel", nullptr, cancel_batch, false},
}};

/// Whether a path is a row's; `id` becomes what its "*" stands for.
bool matches(std::string_view pattern, std::string_view path, std::string& id) {
  const auto star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == path;
  const auto before = pattern.substr(0, star), after = pattern.substr(star + 1);
  if (path.size() <= before.size() + after.size()) return false;
  if (!path.starts_with(before) || !path.ends_with(after)) return false;
  const auto segment = path.substr(star, path.size() - before.size() - after.size());
  if (segment.find('/') != std::string_view::npos) return false;
  id = segment;
  return true;
}

http_reply not_allowed(const http_request& request, const std::string& allow) {
  auto reply = error_reply(
      {errc::method_not_allowed,
       "method must be one of " + allow + " for " + request.path + ", got " + request.method, ""});
  reply.headers.emplace_back("Allow", allow);
  return reply;
}

constexpr std::string_view models_prefix = "/v1/models/";

http_answer one_model(request_scope& scope) {
  const auto id = std::string_view(scope.request.path).substr(models_prefix.size());
  for (const auto& model : scope.context.engine.models())
    if (model.id == id) return http_reply{200, model_body(model)};
  return error_reply({actors::errc::unknown_model,
                      "`model` must be a served model, got " + describe(value(id)), "model"});
}

http_reply preflight(const std::string& allow) {
  http_reply reply{204, ""};
  reply.headers = {{"Allow", allow},
                   {"Access-Control-Allow-Methods", allow},
                   {"Access-Control-Allow-Headers", "authorization, content-type, x-request-id"},
                   {"Access-Control-Max-Age", "86400"}};
  return reply;
}

http_answer dispatch(const entry& row, request_scope& scope) {
  const auto& method = scope.request.method;
  std::string allow = row.get != nullptr ? "GET, HEAD" : "";
  if (row.post != nullptr) allow += allow.empty() ? "POST" : ", POST";
  if (row.erase != nullptr) allow += allow.empty() ? "DELETE" : ", DELETE";
  allow += ", OPTIONS";
  if (method == "OPTIONS") return preflight(allow);
  const bool gets = method == "GET" || method == "HEAD";
  const auto run = gets                 ? row.get
                   : method == "POST"   ? row.post
                   : method == "DELETE" ? row.erase
                                        : nullptr;
  if (run == nullptr) return not_allowed(scope.request, allow);
  if (!row.open) {
    auto tenant = scope.context.keys.tenant_of(scope.request.authorization);
    if (!tenant.has_value())
      return error_reply(
          {errc::unauthorized, "`Authorization` must be \"Bearer KEY\" with a known key", ""});
    scope.tenant = std::move(*tenant);
  }
  return run(scope);
}

} // namespace

result<actors::model_info> find_model(const actors::engine_port& engine, const value& body) {
  const auto* name = body.find("model");
  const bool named = name != nullptr && !name->is_null();
  if (named && name->as_string() == nullptr)
    return fail({errc::invalid_field, "`model` must be a string, got " + describe(*name), "model"});
  const auto models = engine.models();
  if (models.empty()) {
    const bool draining = engine.state() == actors::engine_state::draining;
    return fail(
        {draining ? actors::errc::shutting_down : actors::errc::not_ready,
         draining ? "the server is draining" : "no model is ready: " + engine.state_detail(), ""});
  }
  if (!named || name->as_string()->empty()) return models.front();
  for (const auto& model : models)
    if (model.id == *name->as_string()) return model;
  return fail({actors::errc::unknown_model,
               "`model` must be a served model such as \"" + models.front().id + "\", got " +
                   describe(*name),
               "model"});
}

websocket_path find_websocket_path(std::string_view path) {
  if (path == "/v1/responses") return websocket_path::responses;
  if (path == "/v1/stream") return websocket_path::stream;
  return websocket_path::none;
}

http_answer route(http_request request, server_context& context) {
  request_scope scope{request, context, {}, {}};
  for (const auto& row : table)
    if (matches(row.path, request.path, scope.id)) return dispatch(row, scope);
  if (request.path.starts_with(models_prefix)) {
    static constexpr entry row{"", one_model, nullptr, false};
    return dispatch(row, scope);
  }
  return error_reply({errc::unknown_route,
                      "path must be a known one (see /), got " + describe(value(request.path)),
                      ""});
}

} // namespace twill::net
