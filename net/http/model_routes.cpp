#include "net/http/model_routes.hpp"

#include "net/http/prepared_body.hpp"
#include "net/protocol/json/json_writer.hpp"
#include "net/protocol/model_lookup.hpp"
#include "net/protocol/openai/models.hpp"
#include "net/protocol/openai/render.hpp"
#include "net/protocol/openai/tokenize.hpp"

namespace twill::net {
http_answer list_models(request_scope& scope) {
  return http_reply{200, models_body(models_in(scope))};
}

http_answer show_model(request_scope& scope) {
  for (const auto& model : models_in(scope))
    if (model.answers_to(scope.wildcard)) return http_reply{200, model_body(model)};
  return error_reply({actors::errc::unknown_model,
                      "`model` must be a served model, got " + describe(value(scope.wildcard)),
                      "model"});
}

http_answer tokenize(request_scope& scope) {
  return answer_on_worker(scope, tokenize_body);
}

http_answer detokenize(request_scope& scope) {
  return answer_on_worker(scope, detokenize_body);
}

http_answer render_chat(request_scope& scope) {
  return answer_on_worker(scope, render_chat_body);
}

http_answer render_completions(request_scope& scope) {
  return answer_on_worker(scope, render_completions_body);
}

http_answer tokenizer_info(request_scope& scope) {
  auto model = find_model(scope.context.engine, value(value_object{}),
                          scope.context.current.get()->tenant(scope.tenant));
  if (!model.ok()) return error_reply(model.code());
  return slow_reply([model = std::move(model).value(), &engine = scope.context.engine] {
    auto body = tokenizer_info_body(model, engine);
    return body.ok() ? http_reply{200, std::move(body).value()} : error_reply(body.code());
  });
}

} // namespace twill::net
