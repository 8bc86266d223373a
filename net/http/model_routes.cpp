#include "net/http/model_routes.hpp"

#include "net/http/page_of_list.hpp"
#include "net/http/prepared_body.hpp"
#include "net/protocol/anthropic/messages.hpp"
#include "net/protocol/anthropic/model_page.hpp"
#include "net/protocol/json/json_writer.hpp"
#include "net/protocol/model_lookup.hpp"
#include "net/protocol/openai/models.hpp"
#include "net/protocol/openai/render.hpp"
#include "net/protocol/openai/tokenize.hpp"

namespace twill::net {
namespace {

http_reply list_models_for_anthropic(request_scope& scope) {
  constexpr std::size_t standard = 20, most = 1000;
  const auto& query = scope.request.query;
  const auto limit = page_limit(scope.request, standard, most);
  if (!limit)
    return error_reply(api_error::of({"limit", "be from 1 to " + std::to_string(most),
                                      describe(value(query_of(query, "limit")))}));
  auto body = model_page_body(models_in(scope),
                              {*limit, query_of(query, "before_id"), query_of(query, "after_id")});
  return body.ok() ? http_reply{200, std::move(body).value()} : error_reply(body.code());
}

} // namespace

http_answer list_models(request_scope& scope) {
  if (scope.request.style == api_style::anthropic) return list_models_for_anthropic(scope);
  return http_reply{200, models_body(models_in(scope))};
}

http_answer show_model(request_scope& scope) {
  for (const auto& model : models_in(scope))
    if (model.answers_to(scope.wildcard))
      return http_reply{200, scope.request.style == api_style::anthropic
                                 ? anthropic_model_body(model)
                                 : model_body(model)};
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

http_answer count_tokens(request_scope& scope) {
  return answer_on_worker(scope, count_tokens_body);
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
