// decoder_runner: the step_runner that serves models: a gpu::device with a models::decoder and a
// device_sampler on it.
//
// A model whose weights do not fit the device, or whose options ask for it, streams its weights in
// each step. The first runner opens the model file, and the factory of the runners keeps it open,
// so that a restart only packs the weights again. On a GPU, steps run ahead: a step is launched
// while the one before it computes, and reads the tokens drawn by that one from the device's
// memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "actors/engine.hpp"
#include "actors/executor/step_runner.hpp"
#include "config/options.hpp"
#include "models/offload/streams/disk_store.hpp"

namespace twill::actors {

/// The opened model, which all loads share. A load that finds null opens the files and stores the
/// model here.
using kept_model = std::shared_ptr<std::shared_ptr<const models::model>>;

/// Whether a step is launched while the one before it computes. `by_device`: it is, if the device
/// is not the host and all weights are on it. The other values are for tests: `ahead` forces it on
/// a host, and `waiting` prevents it on a GPU.
enum class run_order : std::uint8_t { by_device, ahead, waiting };

/// `open_store` is for tests: it opens a disk tier of the weights that is not a file.
runner_factory make_decoder_runners(const config::options& options, load_progress progress,
                                    models::offload::store_opener open_store = {},
                                    kept_model kept = nullptr,
                                    run_order order = run_order::by_device);

} // namespace twill::actors
