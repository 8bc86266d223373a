#include "actors/engine.hpp"

#include "actors/decoder_runner.hpp"
#include "actors/detail/caf_engine.hpp"

namespace twill::actors {

std::unique_ptr<engine> start_engine(const config::options& options) {
  return start_engine_with(options, make_decoder_runners(options));
}

} // namespace twill::actors
