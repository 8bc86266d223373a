// start_models: starts a pool with the model files that `[models.NAME]` names.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "actors/engine.hpp"
#include "config/options.hpp"

namespace twill::actors {

/// The bytes of device memory that all models share: `device.memory` if it is `configured`,
/// otherwise what `chip()` reports as free on a GPU, otherwise three quarters of the host's free
/// memory.
std::int64_t pool_budget(std::int64_t configured, const std::function<std::int64_t()>& chip);

/// The models share the pool_budget() of their one device.
std::unique_ptr<engine> start_models(const config::options& options, load_progress progress,
                                     model_finder finder);

} // namespace twill::actors
