// gguf_baichuan: Baichuan and Baichuan2 as GGUF files describe them.
//
// Pure functions of the file. The mathematics are llama.cpp's. Positions follow from the number of
// layers, since no key tells them: 32 (7B) rotary, 40 (13B) ALiBi. The head is taken as it is:
// Baichuan2's rows must have been brought to length 1 before, as its authors say for programs made
// for the first Baichuan; from rows that were not, llama.cpp and twill make the same other logits.
#pragma once

#include "models/checkpoint/checkpoint.hpp"
#include "models/checkpoint/gguf/metadata.hpp"
#include "models/spec.hpp"

namespace twill::models::families {

/// The spec of a GGUF file whose general.architecture is baichuan. Fails with missing_metadata,
/// bad_metadata, missing_tensor, or unsupported (other numbers of layers).
result<model_spec> gguf_baichuan_spec(const gguf::metadata& meta, const checkpoint& weights);

} // namespace twill::models::families
