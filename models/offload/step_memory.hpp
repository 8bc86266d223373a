// step_memory: the device memory that a decoder's steps take beside weights and KV, computed before
// anything is allocated. Pure; the same arrays that models/ and gpu/ allocate, counted by their
// shapes.
#pragma once

#include <cstdint>

#include "models/decoder/decoder.hpp"
#include "models/spec.hpp"

namespace twill::models::offload {

/// Workspace and activations of steps as long as the options allow; what ops prepare comes on top
/// (decoder::scratch_bytes()).
std::int64_t step_bytes(const model_spec& spec, const decoder_options& options);

/// Of one step's activations and arrays alone; block tables are `max_blocks` wide.
std::int64_t activation_bytes(const model_spec& spec, std::int64_t tokens, std::int64_t sequences,
                              std::int64_t rows, std::int64_t max_blocks);

} // namespace twill::models::offload
