// `options` of Ollama's API: how tokens are chosen, and how a model is loaded. Pure.
//
// Honoured: temperature, top_k, top_p, min_p, seed, stop, num_predict, repeat_penalty,
// presence_penalty, frequency_penalty, and repeat_last_n of 0, which turns the penalties off.
// Without effect, with their types checked: what says how a model is loaded or computed (num_ctx,
// num_batch, num_gpu, num_thread, use_mmap, ...), num_keep, and other values of repeat_last_n,
// since penalties count over prompt and answer. Refused: other samplers (mirostat, tfs_z,
// typical_p), unless they are off. Names that Ollama does not know either are ignored, as it does.
#pragma once

#include "config/sampling.hpp"
#include "net/protocol/codec.hpp"
#include "net/protocol/json/fields.hpp"

namespace twill::net {

/// The most members of `options`: several times of what there is.
inline constexpr std::size_t max_ollama_options = 256;

/// Reads `options` of the body. `to` holds the defaults, and the log-probabilities that are wanted.
void read_ollama_options(fields& from, const codec_context& context, config::sampling_params& to);

} // namespace twill::net
