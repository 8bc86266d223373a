// decoder_sizing: decides what a decoder gets of its device: how long its steps are, how many KV
// blocks it has, and where its weights live. The user's options come first; what they leave open
// follows from the memory that is there.
//
// One thread (the executor's). It fails when not even one KV block fits, with the numbers.
#pragma once

#include <cstdint>
#include <optional>

#include "actors/executor/model_on_device.hpp"
#include "actors/port/engine_port.hpp"
#include "models/offload/plan_for_serving.hpp"

namespace twill::actors {

struct decoder_size {
  models::decoder_options options;
  std::int32_t mixed_prompt_tokens = 0;                 ///< see plan_limits; 0: no plan has set it
  std::optional<models::offload::planned_serving> plan; ///< where weights are streamed by one
};

result<decoder_size> size_decoder(const model_on_device& load);

/// What a model takes of a device when all its weights are there.
struct memory_need {
  std::int64_t weights = 0, workspace = 0, kv = 0;
  std::int64_t all() const { return weights + workspace + kv; }
};

/// For a model that shares the device with others. KV is what `kv.memory` asks for, else room for 8
/// sequences of full length, but at most a quarter of `load.available_bytes`.
memory_need estimate_need(const model_on_device& load);

} // namespace twill::actors
