// decoder_sizing: decides what a decoder gets of its device: how long its steps are, how many KV
// blocks it has, and where its weights live. The user's options come first; what they leave open
// follows from the memory that is there.
//
// One thread (the executor's). It fails when not even one KV block fits, with the numbers.
#pragma once

#include <cstdint>

#include "actors/executor/model_on_device.hpp"
#include "actors/port/engine_port.hpp"

namespace twill::actors {

struct decoder_size {
  models::decoder_options options;
  std::int32_t mixed_prompt_tokens = 0; ///< see plan_limits; 0: no plan has set it
};

result<decoder_size> size_decoder(const model_on_device& load);

} // namespace twill::actors
