// completion_settings: writes `generation_settings` of llama.cpp's replies and of GET /props. The
// functions are pure.
#pragma once

#include <cstdint>
#include <string>

#include "actors/port/engine_port.hpp"
#include "net/protocol/json/json_writer.hpp"

namespace twill::net {

struct completion_settings {
  const config::sampling_params& sampling;
  std::int32_t n_probs = 0;
  bool stream = false;
  bool timings_per_token = false;
  std::string grammar = {}; ///< the grammar, or the JSON Schema
};

/// Writes a JSON object with the sampling settings of a request, or with the defaults that requests
/// get. Samplers that twill lacks are written as switched off. `samplers` names the samplers that
/// are applied, in the order of their application.
void add_completion_settings(json_writer& json, const completion_settings& settings);

} // namespace twill::net
