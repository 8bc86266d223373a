// decoder_sizing: decides how much of its device a decoder gets: the length of its steps, the
// number of its KV blocks, and where its weights are. The user's options take precedence; the rest
// follows from the available memory.
//
// One thread (the executor's). Sizing fails if not even one KV block fits; the error states the
// numbers.
#pragma once

#include <cstdint>
#include <optional>

#include "actors/executor/model_on_device.hpp"
#include "actors/port/engine_port.hpp"
#include "models/offload/plan_for_serving.hpp"

namespace twill::actors {

struct decoder_size {
  models::decoder_options options;
  std::int32_t mixed_prompt_tokens = 0; ///< see plan_limits; 0: not set by a plan
  /// set if weights are streamed according to a plan
  std::optional<models::offload::planned_serving> plan;
};

result<decoder_size> size_decoder(const model_on_device& load);

/// The device memory that a model takes when all its weights are on the device.
struct memory_need {
  std::int64_t weights = 0, workspace = 0, kv = 0;
  std::int64_t all() const { return weights + workspace + kv; }
};

/// Estimates the memory need of a model that shares the device with others. KV memory is what
/// `kv.memory` asks for; by default it has room for 8 sequences of full length, but takes at most a
/// quarter of `load.available_bytes`.
memory_need estimate_need(const model_on_device& load);

} // namespace twill::actors
