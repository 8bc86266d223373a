// rotary: frequencies of rotary position embeddings from a config, scaling kinds included.
//
// RoFormer (arXiv:2104.09864); linear: positions divided; dynamic and Qwen's NTK: see rope_growth;
// llama3: per wavelength (Llama 3.1); yarn: arXiv:2309.00071 with Hugging Face's rules for the
// magnitude. Pure functions, computed in double.
#pragma once

#include <cstdint>
#include <vector>

#include "models/families/config_reader.hpp"
#include "models/spec.hpp"

namespace twill::models::families {

/// base^(-2i / rotary_dim). // (rotary_dim / 2)
std::vector<double> plain_frequencies(double base, std::int32_t rotary_dim);

/// Sets kind half_split, frequencies and growth from `rope_theta`, `rope_scaling` (or
/// `rope_parameters`) and `partial_rotary_factor`; scales spec.context_length where the kind
/// lengthens it. spec.head_dim and spec.context_length must be set. Failures go to `config`.
void read_rotary(config_reader& config, model_spec& spec);

/// Frequencies of one row under a growing rule: `prompt` is its sequence's prompt length.
/// (rotary_dim / 2)
std::vector<double> grown_frequencies(const rope_rule& rope, std::int32_t prompt,
                                      std::int32_t position);

} // namespace twill::models::families
