// gguf_metadata: the key-value section of a GGUF file for a recipe, as llama.cpp's converter writes
// it. Pure.
#pragma once

#include <string>

#include "tools/twill-synth/gguf_head.hpp"
#include "tools/twill-synth/names.hpp"

namespace twill::synth {

/// `architecture` is that of gguf_architecture().
gguf_pairs make_gguf_metadata(const recipe& r, const std::string& architecture);

} // namespace twill::synth
