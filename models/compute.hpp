// Resolves the configured compute and KV types against a checkpoint and a device. Pure.
#pragma once

#include <memory>
#include <string>

#include "gpu/device.hpp"
#include "gpu/linear/packed_matrix.hpp"
#include "models/checkpoint/checkpoint.hpp"
#include "models/errc.hpp"
#include "models/spec.hpp"

namespace twill::models {

struct compute_choice {
  gpu::compute_type compute = gpu::compute_type::f32;
  gpu::dtype kv_type = gpu::dtype::f32;
};

/// `compute`: auto | f32 | bf16 | int8 | w8a8; `kv_type`: auto | f32 | f16 | bf16 | int8. Auto
/// compute is int8 for 4- and 8-bit weights, bf16 for 16-bit ones where the device multiplies bf16,
/// else f32; w8a8 is for the weights of weights_for(). Auto KV is f32 with f32 compute; else bf16
/// on hosts that multiply bf16, where attention reads it as it lies, and f16 elsewhere (three bits
/// more precise at the same size). An unknown word is `unsupported`.
result<compute_choice> resolve_compute(const std::string& compute, const std::string& kv_type,
                                       const checkpoint& weights, const gpu::device_info& device);

/// The weights that `compute` multiplies: for w8a8 those of 8 bits that the linear layers and a
/// head of their own are rounded to (see w8a8_weights.hpp), and a tied embedding of 16 or 32 bits;
/// else as they are.
std::shared_ptr<const checkpoint> weights_for(gpu::compute_type compute, const model_spec& spec,
                                              std::shared_ptr<const checkpoint> weights);

/// The kind that most values of the checkpoint's matrices have: "Q4_1", "F16", ...
std::string main_kind(const checkpoint& weights);

} // namespace twill::models
