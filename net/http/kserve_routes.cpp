#include "net/http/kserve_routes.hpp"

#include <optional>
#include <utility>

#include "net/http/prepared_body.hpp"
#include "net/protocol/json/json_writer.hpp"

namespace twill::net {
namespace {

bool serves(const server_context& context) {
  return !context.draining && context.engine.state() == actors::engine_state::ready;
}

std::optional<actors::model_info> named_model(const request_scope& scope) {
  for (auto& model : models_in(scope))
    if (model.answers_to(scope.wildcard)) return std::move(model);
  return std::nullopt;
}

http_reply no_such_model(const request_scope& scope) {
  return error_reply({actors::errc::unknown_model,
                      "`model` must be a served model, got " + describe(value(scope.wildcard)),
                      "model"});
}

} // namespace

http_answer kserve_live(request_scope&) {
  return http_reply{200, R"({"live":true})"};
}

http_answer kserve_ready(request_scope& scope) {
  if (serves(scope.context)) return http_reply{200, R"({"ready":true})"};
  return http_reply{503, R"({"ready":false})"};
}

http_answer kserve_server(request_scope&) {
  return http_reply{200, R"({"name":"twill","version":")" TWILL_VERSION R"(","extensions":[]})"};
}

http_answer kserve_model(request_scope& scope) {
  const auto model = named_model(scope);
  if (!model.has_value()) return no_such_model(scope);
  std::string out;
  json_writer json(out);
  json.begin_object().field("name", model->id).field("platform", "twill");
  json.key("inputs").begin_array().end_array();
  json.key("outputs").begin_array().end_array().end_object();
  return http_reply{200, std::move(out)};
}

http_answer kserve_model_ready(request_scope& scope) {
  const auto model = named_model(scope);
  if (!model.has_value()) return no_such_model(scope);
  const bool is_ready = serves(scope.context) && model->state != actors::model_state::failed;
  std::string out;
  json_writer(out).begin_object().field("name", model->id).field("ready", is_ready).end_object();
  return http_reply{is_ready ? 200 : 503, std::move(out)};
}

} // namespace twill::net
