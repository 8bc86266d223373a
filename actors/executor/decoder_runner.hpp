// decoder_runner: the step_runner that serves models: a gpu::device with a models::decoder and a
// device_sampler on it.
//
// A model whose weights do not fit the device, or whose options say so, is served by streaming them
// in each step. The model file is opened by the first runner and kept by the factory, so that a
// restart only packs the weights again. On a GPU steps run ahead: rows take the tokens of the step
// before on the device.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "actors/engine.hpp"
#include "actors/executor/step_runner.hpp"
#include "config/options.hpp"
#include "models/offload/streams/disk_store.hpp"

namespace twill::actors {

/// Opens the disk tier in place of a file, for tests; null opens a file.
using store_opener = std::function<models::result<std::unique_ptr<models::offload::disk_store>>()>;

/// The model that loads use where it is not null; a load that finds it null opens the files and
/// leaves it here.
using kept_model = std::shared_ptr<std::shared_ptr<const models::model>>;

/// Whether a step is launched while the one before it computes. By the device: where it is another
/// chip and all weights live on it. Tests have it so on a host, too, or not on a chip.
enum class run_order : std::uint8_t { by_device, ahead, waiting };

runner_factory make_decoder_runners(const config::options& options, load_progress progress,
                                    store_opener open_store = {}, kept_model kept = nullptr,
                                    run_order order = run_order::by_device);

} // namespace twill::actors
