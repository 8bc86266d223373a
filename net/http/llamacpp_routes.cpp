#include "net/http/llamacpp_routes.hpp"

#include <algorithm>
#include <utility>

#include "net/http/page_of_list.hpp"
#include "net/http/prepared_body.hpp"
#include "net/protocol/llamacpp/props.hpp"
#include "net/protocol/model_lookup.hpp"

namespace twill::net {
namespace {

result<actors::model_info> model_in_query(const request_scope& scope) {
  return find_model(scope.context.engine,
                    value(value_object{{"model", query_of(scope.request.query, "model")}}),
                    scope.context.current.get()->tenant(scope.tenant));
}

} // namespace

http_answer props(request_scope& scope) {
  auto model = model_in_query(scope);
  if (!model.ok()) return error_reply(model.code());
  return slow_reply([model = std::move(model).value(), &engine = scope.context.engine,
                     slots = scope.context.options.scheduler.max_running] {
    auto body = props_body(model, engine, slots);
    return body.ok() ? http_reply{200, std::move(body).value()} : error_reply(body.code());
  });
}

http_answer slots(request_scope& scope) {
  const auto model = model_in_query(scope);
  if (!model.ok()) return error_reply(model.code());
  const auto most = scope.context.options.scheduler.max_running;
  std::int32_t running = 0;
  for (const auto& one : scope.context.engine.stats_of_models())
    if (one.model == model.value().id) running = std::min(most, one.stats.requests_running);
  if (running == most && query_of(scope.request.query, "fail_on_no_slot") == "1")
    return error_reply({actors::errc::queue_timed_out,
                        "all " + std::to_string(most) + " slots (`scheduler.max_running`) are busy",
                        ""});
  return http_reply{200, slots_body(model.value(), most, running)};
}

http_answer apply_template(request_scope& scope) {
  return answer_on_worker(scope, apply_template_body);
}

} // namespace twill::net
