// rotary: computes the frequencies of rotary position embeddings from a config, with scaling.
//
// `linear` scaling divides positions by the factor; `dynamic` is described at
// rope_growth::length_ntk in models/spec.hpp; `llama3` scales each frequency by its wavelength
// (Llama 3.1); `yarn` is arXiv:2309.00071 with Hugging Face's rules for the magnitude. Pure
// functions that compute in double precision.
#pragma once

#include <cstdint>

#include "models/families/config_reader.hpp"
#include "models/spec.hpp"

namespace twill::models::families {

/// Sets the kind (half_split) of spec.rope, the frequencies, and the rule by which they change with
/// the sequence's length (rope_growth in models/spec.hpp), from `rope_theta`, `rope_scaling` (or
/// `rope_parameters`) and `partial_rotary_factor`. Also scales spec.context_length if the kind of
/// scaling lengthens it. spec.head_dim and spec.context_length must be set. Reports failures to
/// `config`.
void read_rotary(config_reader& config, model_spec& spec);

/// Returns the context length after scaling by `factor` has lengthened it; at most 2^26.
std::int32_t lengthened(std::int32_t length, double factor);

} // namespace twill::models::families
