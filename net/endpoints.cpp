#include "net/endpoints.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "net/admin/admin_routes.hpp"
#include "net/admin/admin_stream.hpp"
#include "net/admin/model_orders.hpp"
#include "net/batch/batch_routes.hpp"
#include "net/http/kserve_routes.hpp"
#include "net/http/llamacpp_routes.hpp"
#include "net/http/model_routes.hpp"
#include "net/http/ollama_routes.hpp"
#include "net/http/page_routes.hpp"
#include "net/http/response_routes.hpp"
#include "net/http/system_routes.hpp"
#include "net/http/tgi_routes.hpp"
#include "net/http/worker_routes.hpp"
#include "net/protocol/anthropic/messages.hpp"
#include "net/protocol/llamacpp/completion.hpp"
#include "net/protocol/ollama/chat.hpp"
#include "net/protocol/ollama/embed.hpp"
#include "net/protocol/ollama/generate.hpp"
#include "net/protocol/openai/chat.hpp"
#include "net/protocol/openai/completions.hpp"
#include "net/protocol/openai/embeddings.hpp"
#include "net/protocol/openai/responses_reply.hpp"
#include "net/protocol/openai/responses_socket.hpp"
#include "net/protocol/openai/scores.hpp"
#include "net/protocol/stream/stream_dialect.hpp"
#include "net/protocol/tgi/generate.hpp"

namespace twill::net {
namespace {

constexpr std::int64_t small_body_bytes = 64 * 1024;

template <class Dialect>
std::unique_ptr<dialect> open(dialect_scope scope) {
  return std::make_unique<Dialect>(std::move(scope));
}

constexpr auto get = http_method::get;
constexpr auto post = http_method::post;
constexpr auto del = http_method::del;
constexpr auto open_to_all = key_rule::open;
constexpr auto with_key = key_rule::required;
constexpr auto small = body_limit::small;
constexpr auto full = body_limit::full;

constexpr std::array table = {
    // clang-format off
    //       method path                     action                     key          body   batch
    endpoint{get,  "/",                      send_chat_page,            open_to_all},
    endpoint{get,  "/page/*",                send_page_file,            open_to_all},
    endpoint{get,  "/routes",                list_routes,               open_to_all},
    endpoint{get,  "/docs",                  docs,                      open_to_all},
    endpoint{get,  "/openapi.json",          openapi,                   open_to_all},
    endpoint{get,  "/health",                health,                    open_to_all},
    endpoint{get,  "/ready",                 ready,                     open_to_all},
    endpoint{get,  "/metrics",               metrics,                   open_to_all},
    endpoint{get,  "/version",               version,                   open_to_all},
    endpoint{get,  "/load",                  load,                      open_to_all},
    endpoint{get,  "/get_load",              load_of_ranks,             open_to_all},
    endpoint{get,  "/kv_event_sources",      kv_event_sources,          open_to_all},
    endpoint{get,  "/is_sleeping",           is_sleeping,               open_to_all},
    endpoint{get,  "/server_info",           server_info,               open_to_all},
    endpoint{get,  "/get_server_info",       server_info,               open_to_all},
    endpoint{get,  "/model_info",            model_info,                open_to_all},
    endpoint{get,  "/get_model_info",        model_info,                open_to_all},
    endpoint{get,  "/info",                  tgi_info},
    endpoint{get,  "/ping",                  ready,                     open_to_all},
    endpoint{get,  "/v2",                    kserve_server,             open_to_all},
    endpoint{get,  "/v2/health/live",        kserve_live,               open_to_all},
    endpoint{get,  "/v2/health/ready",       kserve_ready,              open_to_all},
    endpoint{get,  "/v2/models/**",          kserve_model},
    endpoint{get,  "/v2/models/**/ready",    kserve_model_ready},
    endpoint{post, "/",                      parse_compat_generate,     with_key,    full},
    endpoint{post, "/generate",              parse_generate,            with_key,    full},
    endpoint{post, "/generate_stream",       parse_generate_stream,     with_key,    full},
    endpoint{post, "/completion",            parse_completion,          with_key,    full},
    endpoint{post, "/completions",           parse_completion,          with_key,    full},
    endpoint{post, "/apply-template",        apply_template,            with_key,    full},
    endpoint{get,  "/props",                 props},
    endpoint{get,  "/slots",                 slots},
    endpoint{get,  "/v1/models",             list_models},
    endpoint{get,  "/v1/models/**",          show_model},
    endpoint{post, "/v1/completions",        parse_completions,         with_key,    full,  true},
    endpoint{post, "/v1/chat/completions",   parse_chat,                with_key,    full,  true},
    endpoint{post, "/v1/embeddings",         parse_embeddings,          with_key,    full,  true},
    endpoint{post, "/v1/score",              parse_score,               with_key,    full},
    endpoint{post, "/score",                 parse_score,               with_key,    full},
    endpoint{post, "/v1/rerank",             parse_rerank,              with_key,    full},
    endpoint{post, "/v2/rerank",             parse_rerank,              with_key,    full},
    endpoint{post, "/rerank",                parse_rerank,              with_key,    full},
    endpoint{post, "/api/embed",             ollama::parse_embed,       with_key,    full},
    endpoint{post, "/api/embeddings",        ollama::parse_embeddings,  with_key,    full},
    endpoint{get,  "/v1/completions/*",      show_response},
    endpoint{del,  "/v1/completions/*",      delete_response},
    endpoint{post, "/v1/completions/*/cancel", cancel_response},
    endpoint{get,  "/v1/chat/completions/*", show_response},
    endpoint{del,  "/v1/chat/completions/*", delete_response},
    endpoint{post, "/v1/chat/completions/*/cancel", cancel_response},
    endpoint{post, "/v1/messages",           parse_messages,            with_key,    full},
    endpoint{post, "/v1/messages/count_tokens", count_tokens,           with_key,    full},
    endpoint{get,  "/v1/responses",          open<responses_socket>},
    endpoint{post, "/v1/responses",          parse_responses,           with_key,    full,  true},
    endpoint{get,  "/v1/responses/*",        show_response},
    endpoint{del,  "/v1/responses/*",        delete_response},
    endpoint{post, "/v1/responses/*/cancel", cancel_response},
    endpoint{get,  "/v1/responses/*/input_items", list_input_items},
    endpoint{get,  "/v1/stream",             open<stream_dialect>},
    endpoint{del,  "/v1/stream/*",           delete_response},
    endpoint{post, "/v1/completions/render", render_completions,        with_key,    full},
    endpoint{post, "/v1/chat/completions/render", render_chat,          with_key,    full},
    endpoint{post, "/tokenize",              tokenize,                  with_key,    full},
    endpoint{post, "/detokenize",            detokenize,                with_key,    full},
    endpoint{get,  "/tokenizer_info",        tokenizer_info},
    endpoint{post, "/v1/tokenize",           tokenize,                  with_key,    full},
    endpoint{post, "/v1/detokenize",         detokenize,                with_key,    full},
    endpoint{get,  "/v1/files",              list_files},
    endpoint{post, "/v1/files",              upload_file,               with_key,    full},
    endpoint{get,  "/v1/files/*",            show_file},
    endpoint{del,  "/v1/files/*",            delete_file},
    endpoint{get,  "/v1/files/*/content",    file_content},
    endpoint{get,  "/v1/batches",            list_batches},
    endpoint{post, "/v1/batches",            create_batch},
    endpoint{get,  "/v1/batches/*",          show_batch},
    endpoint{post, "/v1/batches/*/cancel",   cancel_batch},
    endpoint{post, "/api/chat",              parse_ollama_chat,         with_key,    full},
    endpoint{post, "/api/generate",          parse_ollama_generate,     with_key,    full},
    endpoint{get,  "/api/tags",              ollama_tags},
    endpoint{get,  "/api/ps",                ollama_ps},
    endpoint{post, "/api/show",              ollama_show},
    endpoint{post, "/api/pull",              ollama_pull},
    endpoint{get,  "/api/version",           ollama_version,            open_to_all},
    endpoint{post, "/api/create",            refuse_model_change},
    endpoint{post, "/api/copy",              refuse_model_change},
    endpoint{post, "/api/push",              refuse_model_change},
    endpoint{del,  "/api/delete",            refuse_model_change},
    endpoint{get,  "/api/blobs/*",           refuse_model_change},
    endpoint{post, "/api/blobs/*",           refuse_model_change},
    // clang-format on
};

// The endpoints at `server.admin_listen`. A client on a Unix socket needs no key. A client on a TCP
// address needs an administrator's key for every row except the files of the dashboard, because a
// browser cannot send a key when it loads those files.
constexpr std::array admin_table = {
    // clang-format off
    //       method path                     action                     key
    endpoint{get,  "/",                      send_dashboard,            open_to_all},
    endpoint{get,  "/page/*",                send_page_file,            open_to_all},
    endpoint{get,  "/admin",                 list_admin_routes},
    endpoint{get,  "/admin/stream",          open<admin_stream>},
    endpoint{get,  "/admin/state",           show_state},
    endpoint{get,  "/admin/ledger",          show_ledger},
    endpoint{post, "/admin/reload",          reload},
    endpoint{get,  "/admin/models",          list_model_states},
    endpoint{post, "/admin/models/*/load",   load_model},
    endpoint{post, "/admin/models/*/sleep",  sleep_model},
    endpoint{post, "/admin/models/*/unload", unload_model},
    endpoint{get,  "/health",                health},
    endpoint{get,  "/ready",                 ready},
    endpoint{get,  "/metrics",               admin_metrics},
    endpoint{get,  "/version",               version},
    // clang-format on
};

std::optional<http_method> method_of(std::string_view name) {
  if (name == "GET" || name == "HEAD") return http_method::get;
  if (name == "POST") return http_method::post;
  if (name == "DELETE") return http_method::del;
  return std::nullopt;
}

std::string_view names_of(http_method method) {
  switch (method) {
  case http_method::get:
    return "GET, HEAD";
  case http_method::post:
    return "POST";
  case http_method::del:
    return "DELETE";
  }
  return {};
}

/// Whether `path` matches this row; if so, `wildcard` becomes the part of `path` that the row's
/// star stands for.
bool matches(const endpoint& row, std::string_view path, std::string& wildcard) {
  const auto pattern = row.path;
  const auto star = row.star;
  if (star == std::string_view::npos) return pattern == path;
  const bool many = pattern.substr(star).starts_with("**");
  const auto before = pattern.substr(0, star);
  const auto after = pattern.substr(star + (many ? 2 : 1));
  if (path.size() <= before.size() + after.size()) return false;
  if (!path.starts_with(before) || !path.ends_with(after)) return false;
  const auto part = path.substr(star, path.size() - before.size() - after.size());
  if (!many && part.find('/') != std::string_view::npos) return false;
  wildcard = part;
  return true;
}

} // namespace

std::string_view name_of(http_method method) {
  const auto all = names_of(method);
  return all.substr(0, all.find(','));
}

std::span<const endpoint> endpoints(listener_kind listener) {
  if (listener == listener_kind::clients) return table;
  return admin_table;
}

endpoint_match match_endpoint(std::string_view method, std::string_view path,
                              listener_kind listener) {
  endpoint_match match;
  if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1); // some clients append a slash
  const auto wanted = method_of(method);
  for (const auto& row : endpoints(listener)) {
    if (!matches(row, path, match.wildcard)) continue;
    if (match.allow.find(names_of(row.method)) == std::string::npos) {
      if (!match.allow.empty()) match.allow += ", ";
      match.allow += names_of(row.method);
    }
    if (wanted == row.method) match.target = &row;
  }
  if (!match.allow.empty()) match.allow += ", OPTIONS";
  return match;
}

codec find_batch_codec(std::string_view path) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const endpoint& row) {
    return row.batch && row.path == path;
  });
  return found == table.end() ? nullptr : std::get<codec>(found->action);
}

std::string batch_paths() {
  std::vector<std::string_view> paths;
  for (const auto& row : table)
    if (row.batch) paths.push_back(row.path);
  std::string listed;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (i > 0) listed += i + 1 == paths.size() ? " or " : ", ";
    listed += paths[i];
  }
  return listed;
}

std::int64_t max_body_bytes(const endpoint& target, const config::server_options& limits) {
  return target.body == body_limit::full ? limits.max_body_bytes
                                         : std::min(small_body_bytes, limits.max_body_bytes);
}

} // namespace twill::net
