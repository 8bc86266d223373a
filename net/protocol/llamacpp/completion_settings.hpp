// completion_settings: `generation_settings` of llama.cpp's replies and of GET /props. Pure.
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
  std::string grammar = {}; ///< or the schema
};

/// An object with what is in force. What twill does not have stands there switched off, and
/// `samplers` names what is applied, in its order.
void add_completion_settings(json_writer& json, const completion_settings& settings);

} // namespace twill::net
