#include "actors/engine.hpp"

#include <utility>

#include "actors/detail/caf_engine.hpp"
#include "actors/executor/runners.hpp"
#include "actors/pool/pool_of_files.hpp"

namespace twill::actors {

std::unique_ptr<engine> start_engine(const config::options& options, load_progress progress) {
  if (!options.models.empty()) return start_models(options, std::move(progress));
  return start_engine_with(options, make_runners(options, std::move(progress)));
}

} // namespace twill::actors
