// compute: the types in which a checkpoint is computed on a device, from the configured words.
// Pure.
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

/// `compute` is one of auto, f32, f16, bf16, int8 and w8a8; `kv_type` one of auto, f32, f16, bf16,
/// int8.
///
/// Compute auto is f32 for weights of 32 bits. Else, on a device that multiplies f16, it is f16 for
/// weights of f16 and for quantised ones of which `spec` states f16, and bf16 for all others where
/// the device multiplies that. On other devices it is int8 for weights of 4 and 8 bits, bf16 for
/// weights of 16 bits where the device multiplies bf16, and f32 elsewhere. With w8a8 the caller
/// loads the weights of weights_for().
///
/// KV auto is f32 with f32 compute, and bf16 with bf16 compute on a device that multiplies f16.
/// Otherwise it is bf16 on hosts that multiply bf16, where attention needs no conversion, and f16
/// elsewhere, which is three bits more precise at the same size. A word that is none of these, and
/// f16 on a device that does not multiply it, fail with `unsupported`.
result<compute_choice> resolve_compute(const std::string& compute, const std::string& kv_type,
                                       const model_spec& spec, const checkpoint& weights,
                                       const gpu::device_info& device);

/// The checkpoint that a decoder is to load on `device`. For w8a8 the matrices of linear layers, a
/// separate head and a tied embedding of 16 or 32 bits are rounded to 8 bits (see
/// w8a8_weights.hpp); for all other compute types it is `weights` itself.
std::shared_ptr<const checkpoint> weights_for(gpu::compute_type compute, const model_spec& spec,
                                              std::shared_ptr<const checkpoint> weights,
                                              const gpu::device_info& device);

/// The kind that most values of the checkpoint's matrices have: "Q4_1", "F16", ...
std::string main_kind(const checkpoint& weights);

} // namespace twill::models
