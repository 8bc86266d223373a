#include "net/protocol/model_lookup.hpp"

#include "net/protocol/json/json_writer.hpp"

namespace twill::net {
namespace {

failure<api_error> no_model(const actors::engine_port& engine) {
  if (engine.state() == actors::engine_state::draining)
    return fail({actors::errc::shutting_down, "the server is shutting down; retry later", ""});
  return fail({actors::errc::not_ready,
               "no model is ready (" + engine.state_detail() + "); retry later", ""});
}

} // namespace

result<actors::model_info> find_model(const actors::engine_port& engine, const value& body) {
  const auto* name = body.find("model");
  const bool named = name != nullptr && !name->is_null();
  if (named && name->as_string() == nullptr)
    return fail({errc::invalid_field, "`model` must be a string, got " + describe(*name), "model"});
  const auto models = engine.models();
  if (models.empty()) return no_model(engine);
  if (!named || name->as_string()->empty()) return models.front();
  for (const auto& model : models)
    if (model.answers_to(*name->as_string())) return model;
  return fail({actors::errc::unknown_model,
               "`model` must be a served model such as \"" + models.front().id + "\", got " +
                   describe(*name),
               "model"});
}

} // namespace twill::net
