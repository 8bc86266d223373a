// completion_samplers: `samplers` of llama.cpp's /completion. Pure.
#pragma once

#include "config/sampling.hpp"
#include "net/protocol/json/fields.hpp"

namespace twill::net {

/// Puts off what is not named. Names are llama.cpp's, or its letters in one string; their order
/// must be llama.cpp's or twill's, since no other can be had.
void read_samplers(fields& from, config::sampling_params& to);

void put_penalties_off(config::sampling_params& to);

} // namespace twill::net
