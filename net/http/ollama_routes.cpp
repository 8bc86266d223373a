#include "net/http/ollama_routes.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "net/http/prepared_body.hpp"
#include "net/http/weight_files.hpp"
#include "net/protocol/json/fields.hpp"
#include "net/protocol/json/json_parse.hpp"
#include "net/protocol/json/json_writer.hpp"
#include "net/protocol/model_lookup.hpp"
#include "net/protocol/ollama/models.hpp"

namespace twill::net {
namespace {

std::vector<ollama_model> look_at_models(std::vector<actors::model_info> models,
                                         const actors::engine_port& engine) {
  const auto stats = engine.stats_of_models();
  std::vector<ollama_model> seen;
  for (auto& info : models) {
    const auto own = std::find_if(stats.begin(), stats.end(),
                                  [&](const auto& one) { return one.model == info.id; });
    const bool on_gpu = own != stats.end() && !own->stats.device_is_host &&
                        own->stats.device_memory_reserved_bytes > 0;
    auto files = look_at_weights(info.path);
    seen.push_back({std::move(info), std::move(files), on_gpu});
  }
  return seen;
}

http_answer list_ollama_models(request_scope& scope,
                               std::string (*write)(std::span<const ollama_model>)) {
  return slow_reply{[models = models_in(scope), &engine = scope.context.engine, write] {
    return http_reply{200, write(look_at_models(models, engine))};
  }};
}

struct asked_model {
  actors::model_info info;
  bool stream = true;
};

/// Returns the model that `model` or, in older clients, `name` names.
result<asked_model> read_named_model(request_scope& scope) {
  auto body = parse_json(scope.request.body);
  if (!body.ok()) return fail(body.code());
  fields from(body.value());
  asked_model read;
  std::string name;
  from.read("name", name);
  from.read("model", name);
  from.read("stream", read.stream);
  if (name.empty()) from.require("model");
  if (from.ok() && name.empty()) from.reject("model", "the name of a model", value(name));
  if (!from.ok()) return fail(from.error());
  auto found = find_model(scope.context.engine, value(value_object{{"model", name}}),
                          scope.context.current.get()->tenant(scope.tenant));
  if (!found.ok()) return fail(found.code());
  read.info = std::move(found).value();
  return read;
}

} // namespace

http_answer ollama_tags(request_scope& scope) {
  return list_ollama_models(scope, ollama_tags_body);
}

http_answer ollama_ps(request_scope& scope) {
  return list_ollama_models(scope, ollama_ps_body);
}

field_rows ollama_show_rows() {
  return {model_row,
          {"name", schema::string, "The older name of `model`."},
          {"verbose", schema::any, "Ollama", field_use::no_effect}};
}

field_rows ollama_pull_rows() {
  return {model_row,
          {"name", schema::string, "The older name of `model`."},
          {"stream", schema::boolean, "Lines of JSON (the default), or one."},
          {"insecure", schema::any, "Ollama", field_use::no_effect}};
}

http_answer ollama_show(request_scope& scope) {
  auto named = read_named_model(scope);
  if (!named.ok()) return error_reply(named.code());
  return slow_reply{[info = std::move(named).value().info, &engine = scope.context.engine] {
    std::string chat_template;
    if (info.has_chat_template) {
      auto tokenizer = engine.describe_tokenizer(info.id);
      if (!tokenizer.ok()) return error_reply(from_engine(tokenizer.code(), tokenizer.detail()));
      chat_template = std::move(tokenizer.value().chat_template);
    }
    const auto seen = look_at_models({info}, engine);
    return http_reply{200, ollama_show_body(seen.front(), chat_template)};
  }};
}

/// Succeeds at once if the model is served, since nothing has to be downloaded.
http_answer ollama_pull(request_scope& scope) {
  const auto named = read_named_model(scope);
  if (!named.ok()) {
    auto error = named.code();
    if (error.code == decltype(error.code)(actors::errc::unknown_model))
      error.message += "; this server loads no models by request: add one to its configuration";
    return error_reply(error);
  }
  std::string body;
  json_writer(body).begin_object().field("status", "success").end_object();
  if (!named.value().stream) return http_reply{200, std::move(body)};
  return http_reply{200, body + "\n", "application/x-ndjson"};
}

http_answer ollama_version(request_scope&) {
  return http_reply{200, ollama_version_body()};
}

http_answer refuse_model_change(request_scope& scope) {
  return error_reply({errc::not_offered,
                      "this server serves the models of its configuration; " + scope.request.path +
                          " would change them, and is not offered",
                      ""});
}

} // namespace twill::net
