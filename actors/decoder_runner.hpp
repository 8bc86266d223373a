// decoder_runner: the real step_runner: a gpu::device, a models::decoder on it, sampling there.
//
// The model file is opened by the first runner and kept by the factory, so that a restart only
// packs the weights again.
#pragma once

#include "actors/engine.hpp"
#include "actors/step_runner.hpp"
#include "config/options.hpp"

namespace twill::actors {

runner_factory make_decoder_runners(const config::options& options, load_progress progress);

} // namespace twill::actors
