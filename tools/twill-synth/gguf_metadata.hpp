// gguf_metadata: the key-value pairs of the GGUF file of a recipe (models/synth/recipe.hpp), as
// llama.cpp's converter would write them. The functions are pure.
#pragma once

#include <string>

#include "tools/twill-synth/gguf_head.hpp"
#include "tools/twill-synth/names.hpp"

namespace twill::synth {

/// `architecture` must be the result of gguf_architecture().
gguf_pairs make_gguf_metadata(const recipe& r, const std::string& architecture);

} // namespace twill::synth
