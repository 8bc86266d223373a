#include "net/http/router.hpp"

#include <algorithm>
#include <optional>

#include "config/base/units.hpp"
#include "net/error_map.hpp"
#include "net/http/header_words.hpp"
#include "net/http/prepared_body.hpp"
#include "net/http/response_routes.hpp"
#include "net/protocol/json/json_parse.hpp"
#include "net/protocol/json/json_writer.hpp"
#include "net/stored/stored_service.hpp"
#include "net/tracing/tracer.hpp"

namespace twill::net {
namespace {

const access_policy& access_at(listener_kind listener, const settings& current) {
  return listener == listener_kind::clients ? current.access : current.admin_access;
}

/// Refuses web pages of other origins and unknown host names, before any other check.
std::optional<api_error> find_intruder(const http_request& head, const server_context& context) {
  const auto current = context.current.get();
  const auto& access = access_at(head.listener, *current);
  if (!access.serves_host(head.host))
    return api_error{errc::wrong_host,
                     "this server does not answer to the host " + describe(value(head.host)) +
                         "; list its name in `server.hosts` if it should",
                     ""};
  if (access.classify(head.origin, head.host) == access_policy::origin_kind::foreign)
    return api_error{errc::foreign_origin,
                     "web pages of " + describe(value(head.origin)) +
                         " may not use this server; list it in `server.cors_origins` if they "
                         "should",
                     ""};
  return std::nullopt;
}

std::optional<api_keys::holder> find_holder(const http_request& head,
                                            const server_context& context) {
  const auto current = context.current.get();
  const auto bearer = bearer_key(head.authorization);
  if (!bearer.empty()) return current->keys.holder_of(bearer);
  const auto offered = read_subprotocols(head.subprotocols);
  return current->keys.holder_of(head.api_key.empty() ? offered.key
                                                      : std::string_view(head.api_key));
}

/// Finds the owner of the API key in the head, if the listener and the endpoint require a key.
result<api_keys::holder> identify(const http_request& head, const endpoint& target,
                                  const server_context& context) {
  if (head.listener == listener_kind::admin_socket) return api_keys::holder{};
  if (target.key == key_rule::open) return api_keys::holder{};
  auto holder = find_holder(head, context);
  if (!holder.has_value()) return fail(unknown_key());
  if (head.listener == listener_kind::admin_address) {
    const auto current = context.current.get();
    const auto* owner = current->tenant(holder->tenant);
    if (owner == nullptr || !owner->admin)
      return fail({errc::not_admin,
                   "`server.admin_listen` needs the key of a tenant with `admin = true`", ""});
  }
  return std::move(*holder);
}

http_reply unknown_path(const http_request& head) {
  const std::string list =
      head.listener == listener_kind::clients ? "the page at /routes" : "/admin";
  return error_reply(
      {errc::unknown_route,
       "nothing is served at " + describe(value(head.path)) + "; " + list + " lists what is", ""});
}

http_reply not_allowed(const http_request& head, const std::string& allow) {
  auto reply = error_reply(
      {errc::method_not_allowed,
       "method must be one of " + allow + " for " + head.path + ", got " + head.method, ""});
  reply.headers.emplace_back("Allow", allow);
  return reply;
}

bool is_header_list(std::string_view text) {
  return text.size() <= 4096 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == ',' || c == ' ';
         });
}

/// Replies to a CORS preflight. Only a page that may use this server learns what it may send.
http_reply preflight(const http_request& head, const std::string& allow,
                     const server_context& context) {
  http_reply reply{204, ""};
  reply.headers = {{"Allow", allow}};
  if (readable_by(head, context).empty()) return reply;
  reply.headers.emplace_back("Access-Control-Allow-Methods", allow);
  if (!head.preflight_headers.empty() && is_header_list(head.preflight_headers))
    reply.headers.emplace_back("Access-Control-Allow-Headers", head.preflight_headers);
  reply.headers.emplace_back("Access-Control-Max-Age", "86400");
  return reply;
}

http_reply websocket_only(const std::string& path) {
  return error_reply({errc::upgrade_required,
                      path + " speaks WebSocket: send a handshake (RFC 6455) with this GET", ""});
}

/// True if a body has no content coding: the list of codings is empty or has only "identity".
bool is_uncoded(std::string_view codings) {
  while (!codings.empty()) {
    const auto end = std::min(codings.find(','), codings.size());
    const auto coding = trimmed(codings.substr(0, end));
    codings.remove_prefix(std::min(end + 1, codings.size()));
    if (!coding.empty() && !is_same_word(coding, "identity")) return false;
  }
  return true;
}

std::string websocket_paths(listener_kind listener) {
  std::string paths;
  for (const auto& row : endpoints(listener))
    if (std::holds_alternative<dialect_opener>(row.action))
      paths += (paths.empty() ? "" : " or ") + std::string(row.path);
  return paths.empty() ? "another address" : paths;
}

/// Returns why a reply that is not streamed would be too large for memory; empty if it would not.
/// Only lengths that the request states are considered.
std::string find_excess(const call& asked, std::int32_t context_tokens, std::int64_t most) {
  if (asked.stream) return {};
  std::int64_t bytes = 0;
  for (const auto& request : asked.requests) {
    const auto& sampling = request.sampling;
    if (sampling.logprobs < 0 || sampling.max_tokens < 0) continue;
    bytes += std::int64_t{sampling.n} * std::min(sampling.max_tokens, context_tokens) *
             static_cast<std::int64_t>(sizeof(actors::token_output) +
                                       sizeof(actors::token_logprob) *
                                           static_cast<std::size_t>(sampling.logprobs));
  }
  if (bytes <= most) return {};
  return "`logprobs` of all tokens would be gathered for one reply and take " +
         format_bytes(bytes) + ", which must be at most " + format_bytes(most) +
         " (`server.max_output`); set `stream`, or ask for fewer tokens, choices or alternatives";
}

/// If a call is to be stored, starts to store it and makes the stored response the source of the
/// call's events.
http_answer store_if_wanted(call generation, request_scope& scope) {
  if (!generation.stored) return generation;
  auto& head = *generation.stored;
  head.client_id = scope.request.request_id;
  const bool only_begin = head.background && !generation.stream;
  auto source = scope.context.stored->begin(std::move(head), std::move(generation.requests.front()),
                                            only_begin);
  if (!source.ok()) return error_reply(source.code());
  generation.source = std::move(source).value();
  return generation;
}

/// True if the request repeats the request of an interrupted stored stream. Such a request is
/// answered from what is stored, so that it works even if the model has been removed.
bool reads_on(const endpoint& target, const http_request& request) {
  const auto api = api_at(target.path);
  return !request.last_event_id.empty() &&
         (api == stored_api::chat || api == stored_api::completions);
}

http_answer generate(const endpoint& target, request_scope& scope) {
  if (reads_on(target, scope.request)) {
    auto body = parse_json(scope.request.body);
    if (!body.ok()) return error_reply(body.code());
    return read_on(scope, *api_at(target.path), std::move(body).value());
  }
  const auto prepared = prepare_body(scope);
  if (!prepared.ok()) return error_reply(prepared.code());
  const auto parse = std::get<codec>(target.action);
  auto generation = parse(prepared.value().body, prepared.value().context());
  if (!generation.ok()) return error_reply(generation.code());
  if (auto excess = find_excess(generation.value(), prepared.value().model.max_model_len,
                                scope.context.output.max_bytes());
      !excess.empty())
    return error_reply({errc::invalid_field, std::move(excess), "logprobs"});
  for (auto& request : generation.value().requests) {
    request.tenant = scope.tenant;
    request.client_id = scope.request.request_id;
    if (scope.context.traces != nullptr)
      scope.context.traces->watch(request, scope.request.traceparent);
  }
  return store_if_wanted(std::move(generation).value(), scope);
}

} // namespace

std::variant<admission, http_reply> admit(const http_request& head, const server_context& context) {
  if (const auto intruder = find_intruder(head, context)) return error_reply(*intruder);
  auto match = match_endpoint(head.method, head.path, head.listener);
  if (match.allow.empty()) return unknown_path(head);
  if (head.method == "OPTIONS") return preflight(head, match.allow, context);
  if (match.target == nullptr) return not_allowed(head, match.allow);
  admission admitted{match.target,
                     std::move(match.wildcard),
                     {},
                     max_body_bytes(*match.target, context.options.server)};
  auto holder = identify(head, *match.target, context);
  if (!holder.ok()) return error_reply(holder.code());
  admitted.holder = std::move(holder).value();
  if (std::holds_alternative<dialect_opener>(match.target->action))
    return websocket_only(head.path);
  if (!is_uncoded(head.content_encoding))
    return error_reply({errc::content_coding,
                        "the body must be sent without compression, got Content-Encoding " +
                            describe(value(head.content_encoding)) +
                            "; leave the header out, or send `identity`",
                        ""});
  const bool of_client = head.listener == listener_kind::clients;
  if (of_client && match.target->method == http_method::post && context.output.full())
    return error_reply(output_is_full());
  return admitted;
}

std::string readable_by(const http_request& head, const server_context& context) {
  const auto current = context.current.get();
  const auto kind = access_at(head.listener, *current).classify(head.origin, head.host);
  return kind == access_policy::origin_kind::allowed ? head.origin : std::string();
}

http_answer respond(const admission& admitted, http_request request, server_context& context) {
  request_scope scope{request, context, admitted.holder.tenant, admitted.wildcard};
  if (std::holds_alternative<codec>(admitted.target->action))
    return generate(*admitted.target, scope);
  return std::get<route_handler>(admitted.target->action)(scope);
}

result<admission> admit_websocket(const http_request& head, const server_context& context) {
  if (auto intruder = find_intruder(head, context)) return fail(std::move(*intruder));
  auto match = match_endpoint("GET", head.path, head.listener);
  const bool speaks =
      match.target != nullptr && std::holds_alternative<dialect_opener>(match.target->action);
  if (!speaks)
    return fail(
        {errc::upgrade_refused,
         "a WebSocket handshake must name " + websocket_paths(head.listener) + ", got " + head.path,
         ""});
  auto holder = identify(head, *match.target, context);
  if (!holder.ok()) return fail(holder.code());
  if (context.draining)
    return fail({actors::errc::shutting_down, "the server is shutting down; retry later", ""});
  return admission{match.target, {}, std::move(holder).value(), 0};
}

} // namespace twill::net
