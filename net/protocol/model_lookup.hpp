// find_model: which served model a request body asks for. Any thread.
#pragma once

#include <vector>

#include "config/base/value.hpp"
#include "config/tenants.hpp"
#include "net/api_error.hpp"

namespace twill::net {

/// The models that a tenant may use; null stands for everybody, who may use all.
std::vector<actors::model_info> models_of(const actors::engine_port& engine,
                                          const config::tenant_options* tenant);

/// The model that `model` in the body names; without one, the first that the tenant may use. So are
/// "unknown", "dummy" and "tgi", where no model has that name: sglang-router, huggingface_hub and
/// TGI's examples write them into requests that name none. A name that ends with ":latest" and that
/// no model has also stands for the name without it, since Ollama's clients add that.
/// What the tenant may not use is as unknown to it as what does not exist.
result<actors::model_info> find_model(const actors::engine_port& engine, const value& body,
                                      const config::tenant_options* tenant);

} // namespace twill::net
