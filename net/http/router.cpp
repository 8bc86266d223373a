#include "net/http/router.hpp"

#include "net/http/prepared_body.hpp"
#include "net/protocol/json/json_writer.hpp"

namespace twill::net {
namespace {

api_error unknown_key() {
  return {errc::unauthorized,
          "a known API key is needed: send it as the header `Authorization: Bearer KEY`", ""};
}

http_reply unknown_path(const std::string& path) {
  return error_reply(
      {errc::unknown_route,
       "nothing is served at " + describe(value(path)) + "; the page at / lists what is", ""});
}

http_reply not_allowed(const http_request& head, const std::string& allow) {
  auto reply = error_reply(
      {errc::method_not_allowed,
       "method must be one of " + allow + " for " + head.path + ", got " + head.method, ""});
  reply.headers.emplace_back("Allow", allow);
  return reply;
}

http_reply preflight(const std::string& allow) {
  http_reply reply{204, ""};
  reply.headers = {{"Allow", allow},
                   {"Access-Control-Allow-Methods", allow},
                   {"Access-Control-Allow-Headers", "authorization, content-type, x-request-id"},
                   {"Access-Control-Max-Age", "86400"}};
  return reply;
}

http_reply websocket_only(const std::string& path) {
  return error_reply({errc::upgrade_required,
                      path + " speaks WebSocket: send a handshake (RFC 6455) with this GET", ""});
}

http_answer generate(codec parse, request_scope& scope) {
  const auto prepared = prepare_body(scope);
  if (!prepared.ok()) return error_reply(prepared.code());
  auto generation = parse(prepared.value().body, prepared.value().context());
  if (!generation.ok()) return error_reply(generation.code());
  for (auto& request : generation.value().requests) {
    request.tenant = scope.tenant;
    request.client_id = scope.request.request_id;
  }
  return std::move(generation).value();
}

} // namespace

std::variant<admission, http_reply> admit(const http_request& head, const server_context& context) {
  auto match = match_endpoint(head.method, head.path);
  if (match.allow.empty()) return unknown_path(head.path);
  if (head.method == "OPTIONS") return preflight(match.allow);
  if (match.target == nullptr) return not_allowed(head, match.allow);
  admission admitted{match.target, std::move(match.wildcard), "",
                     max_body_bytes(*match.target, context.options.server)};
  if (match.target->key == key_rule::required) {
    auto tenant = context.keys.tenant_of(head.authorization);
    if (!tenant.has_value()) return error_reply(unknown_key());
    admitted.tenant = std::move(*tenant);
  }
  if (std::holds_alternative<dialect_opener>(match.target->action))
    return websocket_only(head.path);
  return admitted;
}

http_answer respond(const admission& admitted, http_request request, server_context& context) {
  request_scope scope{request, context, admitted.tenant, admitted.wildcard};
  if (const auto* parse = std::get_if<codec>(&admitted.target->action))
    return generate(*parse, scope);
  return std::get<route_handler>(admitted.target->action)(scope);
}

result<admission> admit_websocket(const http_request& head, const server_context& context) {
  auto match = match_endpoint("GET", head.path);
  const bool speaks =
      match.target != nullptr && std::holds_alternative<dialect_opener>(match.target->action);
  if (!speaks)
    return fail({errc::upgrade_refused,
                 "a WebSocket handshake must name /v1/responses or /v1/stream, got " + head.path,
                 ""});
  auto tenant = context.keys.tenant_of(head.authorization);
  if (!tenant.has_value()) return fail(unknown_key());
  if (context.draining)
    return fail({actors::errc::shutting_down, "the server is shutting down; retry later", ""});
  return admission{match.target, {}, std::move(*tenant), 0};
}

} // namespace twill::net
