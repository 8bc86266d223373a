// Reads `options` of Ollama's API, which control sampling and how a model is loaded. The functions
// are pure.
//
// Options about loading or computing a model have no effect; neither has a `repeat_last_n` other
// than 0. Samplers that twill lacks are refused, unless their value turns them off. Options that
// neither twill nor Ollama knows are ignored, as they are by Ollama.
#pragma once

#include "config/sampling.hpp"
#include "net/protocol/codec.hpp"
#include "net/protocol/field_table.hpp"
#include "net/protocol/json/fields.hpp"

namespace twill::net {

/// Most members that `options` may have: several times the number that Ollama knows.
inline constexpr std::size_t max_ollama_options = 256;

/// Reads `options` of the body. On entry, `to` holds the defaults and the number of
/// log-probabilities.
void read_ollama_options(fields& from, const codec_context& context, config::sampling_params& to);

/// The members of `options`, for "/openapi.json".
field_rows ollama_option_rows();

} // namespace twill::net
