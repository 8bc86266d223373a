// memory_needs: the device memory that a decoder will take, computed before anything is allocated,
// from the shapes and kinds of a checkpoint's matrices. Pure.
//
// A spec that is not valid needs nothing, and tensors that are missing or cannot be read count as
// nothing, because loading reports what is wrong with them.
#pragma once

#include <cstdint>

#include "gpu/device.hpp"
#include "models/checkpoint/checkpoint.hpp"
#include "models/decoder/decoder.hpp"
#include "models/spec.hpp"

namespace twill::models {

/// Bytes of scratch memory of a step as long as the options allow.
std::int64_t step_scratch_bytes(const gpu::device& dev, const model_spec& spec,
                                const checkpoint& weights, const decoder_options& options);

/// Bytes of weights when they are streamed.
streamed_memory streamed_weight_bytes(const model_spec& spec, const checkpoint& weights,
                                      const decoder_options& options);

} // namespace twill::models
