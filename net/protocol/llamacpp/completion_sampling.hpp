// completion_sampling: reads the fields of llama.cpp's /completion that control sampling. Pure,
// except that the engine tokenizes strings in `logit_bias`.
//
// A sampler that llama.cpp has and twill lacks is refused by name if the request turns it on. A
// value that leaves such a sampler off is accepted, because llama.cpp's clients always send such
// values.
#pragma once

#include "net/protocol/codec.hpp"
#include "net/protocol/field_table.hpp"

namespace twill::net {

/// Returns `of_model` with llama.cpp's default for each field that the model and the configuration
/// leave without effect.
config::sampling_params llamacpp_defaults(const config::sampling_params& of_model);

/// Reads the fields from `temperature` to the stop strings, and the output format. `to.sampling`
/// must hold the defaults.
void read_completion_sampling(fields& from, const codec_context& context, actors::request& to);
/// Adds the rows of the fields that read_completion_sampling() reads, except for output formats,
/// for "/openapi.json".
void add_completion_sampling_rows(field_rows& to);

} // namespace twill::net
