// prepared_body: a parsed JSON body together with the model that the body names. Any thread may
// call the functions.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/http/request_scope.hpp"
#include "net/protocol/codec.hpp"

namespace twill::net {

struct prepared_body {
  value body;
  actors::model_info model;
  std::string tenant;
  settings_ptr current; ///< the settings that were in force when the request arrived
  server_context& server;

  codec_context context() const {
    return {model,  current->limits,           server.engine, server.find_previous,
            tenant, server.options.server.name};
  }
};

result<prepared_body> prepare_body(const request_scope& scope);

/// The models that the tenant of this request may use.
std::vector<actors::model_info> models_in(const request_scope& scope);

/// Calls `answer(body, context)`, which returns a result<std::string> of JSON, on a worker thread
/// and replies with its result.
template <class Answer>
http_answer answer_on_worker(const request_scope& scope, Answer answer) {
  auto prepared = prepare_body(scope);
  if (!prepared.ok()) return error_reply(prepared.code());
  auto shared = std::make_shared<prepared_body>(std::move(prepared).value());
  return slow_reply([shared, answer]() -> http_reply {
    auto body = answer(shared->body, shared->context());
    if (!body.ok()) return error_reply(body.code());
    return {200, std::move(body).value()};
  });
}

} // namespace twill::net
