// gguf_scaling: how a GGUF file scales rotary frequencies, as llama.cpp computes it.
//
// Pure; failures go to the gguf_reader.
#pragma once

#include <vector>

#include "models/families/gguf_reader.hpp"
#include "models/spec.hpp"

namespace twill::models::families {

/// Scales `freq`, the frequencies of spec.rope with the file's own factors applied, and sets
/// rope.magnitude. YaRN lengthens spec.context_length, which must be set. `base` is that of the
/// frequencies, above 0. // freq: (rotary_dim / 2)
void read_gguf_scaling(gguf_reader& file, double base, model_spec& spec, std::vector<double>& freq);

} // namespace twill::models::families
