// find_model: finds the served model that a request body asks for. Any thread may call it.
#pragma once

#include <vector>

#include "config/base/value.hpp"
#include "config/tenants.hpp"
#include "net/api_error.hpp"

namespace twill::net {

/// The models that a tenant may use. A null tenant may use all models.
std::vector<actors::model_info> models_of(const actors::engine_port& engine,
                                          const config::tenant_options* tenant);

/// Finds the model that the member `model` of the body names. Without `model`, the first model that
/// the tenant may use is taken. The first model is taken as well for the names "unknown", "dummy"
/// and "tgi", unless a model has that name: sglang-router, huggingface_hub and TGI's examples write
/// these names into requests that are meant for any model. A name that ends with ":latest" and
/// matches no model is looked up again without that suffix, because Ollama's clients append it.
///
/// A model that the tenant may not use is reported as not found, just as a model that does not
/// exist.
result<actors::model_info> find_model(const actors::engine_port& engine, const value& body,
                                      const config::tenant_options* tenant);

} // namespace twill::net
