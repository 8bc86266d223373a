// gguf_scaling: scales rotary frequencies as a GGUF file demands, with llama.cpp's formulas.
//
// The function is pure; it reports failures to the gguf_reader.
#pragma once

#include <vector>

#include "models/families/gguf_reader.hpp"
#include "models/spec.hpp"

namespace twill::models::families {

/// Scales `freq` and sets rope.magnitude. `freq` holds the frequencies of spec.rope, already
/// divided by the factors in the tensor that spec.names.rope_factors names; `base`, above 0, is the
/// base of the frequencies. YaRN lengthens spec.context_length, which must be set.
/// // freq: (rotary_dim / 2)
void read_gguf_scaling(gguf_reader& file, double base, model_spec& spec, std::vector<double>& freq);

} // namespace twill::models::families
