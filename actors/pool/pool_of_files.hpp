// start_models: the pool over the model files that `[models.NAME]` name.
#pragma once

#include <memory>

#include "actors/engine.hpp"
#include "config/options.hpp"

namespace twill::actors {

/// `device.memory` is the budget of all models together; where it sets no limit, three quarters of
/// the memory that is free now.
std::unique_ptr<engine> start_models(const config::options& options, load_progress progress,
                                     model_finder finder);

} // namespace twill::actors
