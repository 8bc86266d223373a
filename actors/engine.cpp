#include "actors/engine.hpp"

#include <utility>

#include "actors/detail/caf_engine.hpp"
#include "actors/executor/decoder_runner.hpp"
#include "actors/executor/null_runner.hpp"
#include "actors/pool/pool_of_files.hpp"

namespace twill::actors {

std::unique_ptr<engine> start_engine(const config::options& options, load_progress progress) {
  if (computes_nothing(options.model.path))
    return start_engine_with(options, make_null_runners(options));
  if (!options.models.empty()) return start_models(options, std::move(progress));
  return start_engine_with(options, make_decoder_runners(options, std::move(progress)));
}

} // namespace twill::actors
