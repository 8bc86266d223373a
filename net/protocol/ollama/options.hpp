// `options` of Ollama's API: how tokens are chosen, and how a model is loaded. Pure.
//
// What says how a model is loaded or computed has no effect, nor has a `repeat_last_n` other than
// 0. Samplers that this server lacks are refused, unless their value turns them off.
// Names that Ollama does not know either are ignored, as it does.
#pragma once

#include "config/sampling.hpp"
#include "net/protocol/codec.hpp"
#include "net/protocol/field_table.hpp"
#include "net/protocol/json/fields.hpp"

namespace twill::net {

/// The most members of `options`: several times of what there is.
inline constexpr std::size_t max_ollama_options = 256;

/// Reads `options` of the body. `to` holds the defaults, and the log-probabilities that are wanted.
void read_ollama_options(fields& from, const codec_context& context, config::sampling_params& to);

/// The members of `options`, for "/openapi.json".
field_rows ollama_option_rows();

} // namespace twill::net
