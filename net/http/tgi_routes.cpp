#include "net/http/tgi_routes.hpp"

#include <utility>

#include "net/http/prepared_body.hpp"
#include "net/protocol/json/json_writer.hpp"

namespace twill::net {

http_answer tgi_info(request_scope& scope) {
  const auto models = models_in(scope);
  if (models.empty())
    return error_reply({actors::errc::not_ready, "no model is known yet; retry later", ""});
  const auto& model = models.front();
  const auto& scheduler = scope.context.options.scheduler;
  const auto current = scope.context.current.get();
  std::string out;
  json_writer json(out);
  json.begin_object()
      .field("model_id", model.id)
      .field("model_sha", nullptr)
      .field("model_dtype", model.quantization)
      .field("model_pipeline_tag", nullptr)
      .field("max_concurrent_requests", std::int64_t{scheduler.max_running} + scheduler.max_queued)
      .field("max_best_of", current->limits.max_choices)
      .field("max_stop_sequences", current->limits.max_stop_strings)
      .field("max_input_tokens", model.max_model_len - 1)
      .field("max_total_tokens", model.max_model_len)
      .field("validation_workers", 1)
      .field("max_client_batch_size", 1)
      .field("router", "twilld")
      .field("version", TWILL_VERSION)
      .field("sha", nullptr)
      .field("docker_label", nullptr)
      .end_object();
  return http_reply{200, std::move(out)};
}

} // namespace twill::net
