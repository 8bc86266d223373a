#include "actors/engine.hpp"

#include <utility>

#include "actors/engine/caf_engine.hpp"
#include "actors/executor/runners.hpp"
#include "actors/pool/pool_of_files.hpp"

namespace twill::actors {

namespace {

/// A factory of runners for the model. Its first call finds the model, on the thread that loads it.
runner_factory find_and_run(const config::options& options, load_progress progress,
                            model_finder finder) {
  // Executors are started again after failures, each with a copy of the runner factory. All copies
  // share this pointer, so that the search for the model's path is made only once.
  const auto found = std::make_shared<runner_factory>();
  return [options, progress = std::move(progress), finder = std::move(finder), found] {
    if (!*found) {
      config::options own = options;
      own.model.path = finder.find(options.model.path, nullptr);
      *found = make_runners(own, progress);
    }
    return (*found)();
  };
}

} // namespace

std::unique_ptr<engine> start_engine(const config::options& options, load_progress progress,
                                     model_finder finder) {
  if (!options.models.empty()) return start_models(options, std::move(progress), std::move(finder));
  if (!finder.find) return start_engine_with(options, make_runners(options, std::move(progress)));
  return start_engine_with(options, find_and_run(options, std::move(progress), std::move(finder)));
}

} // namespace twill::actors
