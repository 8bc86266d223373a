#include "net/admin/model_orders.hpp"

#include "net/protocol/json/json_writer.hpp"
#include "net/protocol/openai/models.hpp"

namespace twill::net {
namespace {

void add_state(json_writer& json, const actors::model_info& model) {
  json.begin_object().field("id", model.id).key("aliases").begin_array();
  for (const auto& name : model.other_names)
    json.add(name);
  json.end_array()
      .field("path", model.path)
      .field("state", name_of(model.state))
      .field("detail", model.detail)
      .field("pinned", model.pinned)
      .field("need_bytes", model.need_bytes)
      .field("granted_bytes", model.granted_bytes)
      .field("requests_under_way", model.requests_under_way)
      .field("requests_waiting", model.requests_waiting)
      .end_object();
}

http_answer order(request_scope& scope, actors::model_order what) {
  const auto model = scope.context.engine.order_model(scope.wildcard, what);
  if (!model.ok()) return error_reply({model.code(), model.detail(), "model"});
  std::string body;
  json_writer json(body);
  add_state(json, model.value());
  return http_reply{202, std::move(body)};
}

} // namespace

http_answer list_model_states(request_scope& scope) {
  std::string body;
  json_writer json(body);
  json.begin_object().field("object", "list").key("data").begin_array();
  for (const auto& model : scope.context.engine.models())
    add_state(json, model);
  json.end_array().end_object();
  return http_reply{200, std::move(body)};
}

http_answer load_model(request_scope& scope) {
  return order(scope, actors::model_order::load);
}
http_answer sleep_model(request_scope& scope) {
  return order(scope, actors::model_order::sleep);
}
http_answer unload_model(request_scope& scope) {
  return order(scope, actors::model_order::unload);
}

} // namespace twill::net
