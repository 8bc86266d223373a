// rotary: frequencies of rotary position embeddings from a config, scaling kinds included.
//
// Linear scaling divides positions; for dynamic see rope_growth; llama3 scales by wavelength (Llama
// 3.1); yarn is arXiv:2309.00071 with Hugging Face's rules for the magnitude. Pure; in double.
#pragma once

#include <cstdint>

#include "models/families/config_reader.hpp"
#include "models/spec.hpp"

namespace twill::models::families {

/// Sets kind half_split, frequencies and growth from `rope_theta`, `rope_scaling` (or
/// `rope_parameters`) and `partial_rotary_factor`; scales spec.context_length where the kind
/// lengthens it. spec.head_dim and spec.context_length must be set. Failures go to `config`.
void read_rotary(config_reader& config, model_spec& spec);

/// The context length of a model whose positions scaling by `factor` lengthens; at most 2^26.
std::int32_t lengthened(std::int32_t length, double factor);

} // namespace twill::models::families
