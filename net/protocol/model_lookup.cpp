#include "net/protocol/model_lookup.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "net/protocol/json/json_writer.hpp"

namespace twill::net {
namespace {

/// Placeholder names that sglang-router, huggingface_hub and the examples of TGI send if the user
/// named no model.
constexpr std::array<std::string_view, 3> stand_ins = {"unknown", "dummy", "tgi"};

/// The suffix that Ollama's clients append to a name without a tag.
constexpr std::string_view latest_tag = ":latest";

failure<api_error> no_model(const actors::engine_port& engine) {
  if (engine.state() == actors::engine_state::draining)
    return fail({actors::errc::shutting_down, "the server is shutting down; retry later", ""});
  return fail({actors::errc::not_ready,
               "no model is ready (" + engine.state_detail() + "); retry later", ""});
}

} // namespace

std::vector<actors::model_info> models_of(const actors::engine_port& engine,
                                          const config::tenant_options* tenant) {
  auto models = engine.models();
  std::erase_if(models, [&](const auto& model) { return !config::may_use(tenant, model.id); });
  return models;
}

result<actors::model_info> find_model(const actors::engine_port& engine, const value& body,
                                      const config::tenant_options* tenant) {
  const auto* name = body.find("model");
  const bool named = name != nullptr && !name->is_null();
  if (named && name->as_string() == nullptr)
    return fail(api_error::of({"model", "be a string", describe(*name)}));
  const auto models = models_of(engine, tenant);
  if (models.empty()) {
    if (engine.models().empty()) return no_model(engine);
    return fail({actors::errc::unknown_model,
                 "`model` must be one that this key may use (`tenants.models`), and none of those "
                 "is served",
                 "model"});
  }
  if (!named || name->as_string()->empty()) return models.front();
  for (const auto& model : models)
    if (model.answers_to(*name->as_string())) return model;
  if (std::find(stand_ins.begin(), stand_ins.end(), *name->as_string()) != stand_ins.end())
    return models.front();
  if (name->as_string()->ends_with(latest_tag)) {
    const auto untagged =
        name->as_string()->substr(0, name->as_string()->size() - latest_tag.size());
    for (const auto& model : models)
      if (model.answers_to(untagged)) return model;
  }
  return fail({actors::errc::unknown_model,
               "`model` must be a served model such as \"" + models.front().id + "\", got " +
                   describe(*name),
               "model"});
}

} // namespace twill::net
