// start_models: the pool over the model files that `[models.NAME]` name.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "actors/engine.hpp"
#include "config/options.hpp"

namespace twill::actors {

/// The bytes that all models share: `device.memory` where it is `configured`, else what `chip()`
/// says that a GPU has free, else three quarters of the host's memory that is free now.
std::int64_t pool_budget(std::int64_t configured, const std::function<std::int64_t()>& chip);

/// The models share the pool_budget() of their one device.
std::unique_ptr<engine> start_models(const config::options& options, load_progress progress,
                                     model_finder finder);

} // namespace twill::actors
