#include "net/http/prepared_body.hpp"

#include "net/protocol/json/json_parse.hpp"
#include "net/protocol/model_lookup.hpp"

namespace twill::net {

result<prepared_body> prepare_body(const request_scope& scope) {
  auto body = parse_json(scope.request.body);
  if (!body.ok()) return fail(body.code());
  auto current = scope.context.current.get();
  auto model = find_model(scope.context.engine, body.value(), current->tenant(scope.tenant));
  if (!model.ok()) return fail(model.code());
  return prepared_body{std::move(body).value(), std::move(model).value(), scope.tenant,
                       std::move(current), scope.context};
}

std::vector<actors::model_info> models_in(const request_scope& scope) {
  return models_of(scope.context.engine, scope.context.current.get()->tenant(scope.tenant));
}

} // namespace twill::net
