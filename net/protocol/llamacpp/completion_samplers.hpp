// completion_samplers: reads `samplers` of llama.cpp's /completion. The functions are pure.
#pragma once

#include "config/sampling.hpp"
#include "net/protocol/json/fields.hpp"

namespace twill::net {

/// Reads the field `samplers` and turns off every sampler that it does not name. The field is a
/// list of llama.cpp's names, or one string of llama.cpp's letters. The samplers must be in
/// llama.cpp's or in twill's order; any other order is refused, because twill cannot change the
/// order.
void read_samplers(fields& from, config::sampling_params& to);

void put_penalties_off(config::sampling_params& to);

} // namespace twill::net
