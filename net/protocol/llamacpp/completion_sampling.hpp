// completion_sampling: reads the fields of llama.cpp's /completion that control sampling. The
// functions are pure, except that a seed may be drawn and that the engine tokenizes strings in
// `logit_bias`.
//
// A sampler that llama.cpp has and twill lacks is refused by name if the request turns it on. A
// value that leaves such a sampler off is accepted, because llama.cpp's clients always send such
// values.
#pragma once

#include "net/protocol/codec.hpp"
#include "net/protocol/field_table.hpp"

namespace twill::net {

/// Returns a copy of `of_model` in which llama.cpp's defaults (temperature 0.8, top_k 40, top_p
/// 0.95, min_p 0.05) replace each value that equals twill's own default: such a value was most
/// likely set neither by the model nor by the configuration.
config::sampling_params llamacpp_defaults(const config::sampling_params& of_model);

/// Reads all sampling fields (`temperature`, ..., `samplers`, `seed`, `logit_bias`, `stop`) and the
/// output format. On entry, `to.sampling` must hold the defaults.
void read_completion_sampling(fields& from, const codec_context& context, actors::request& to);
/// Adds the field_table rows, from which "/openapi.json" is generated, of all fields that
/// read_completion_sampling() reads except the output formats.
void add_completion_sampling_rows(field_rows& to);

} // namespace twill::net
