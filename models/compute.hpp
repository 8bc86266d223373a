// compute: chooses the type in which a model's products are computed and the type of its KV on a
// device, from the words that the configuration gives for them. The functions are pure.
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
/// int8. int8 rounds activations to 8 bits and multiplies them by quantised weights. w8a8 does so
/// too, and also rounds the weights to 8 bits; the caller must then load the checkpoint that
/// weights_for() returns.
///
/// `compute` = auto chooses f32 for 32-bit weights. For other weights the choice depends on the
/// device. A device that multiplies f16 takes f16 for f16 weights, and for quantised weights of a
/// model whose configuration states f16 (model_spec::stated_type); for all other weights it takes
/// bf16, or f32 if it does not multiply bf16. A device that does not multiply f16 takes int8 for
/// 4-bit and 8-bit weights; for 16-bit weights it takes bf16, or f32 if it does not multiply bf16.
///
/// `kv_type` = auto chooses f32 with f32 compute, and bf16 with bf16 compute on a device that
/// multiplies f16. Otherwise it chooses bf16 on hosts that multiply bf16, where attention needs no
/// conversion, and f16 elsewhere, which is three bits more precise at the same size. An unknown
/// word fails with `unsupported`, as does `compute` = f16 on a device that does not multiply f16.
result<compute_choice> resolve_compute(const std::string& compute, const std::string& kv_type,
                                       const model_spec& spec, const checkpoint& weights,
                                       const gpu::device_info& device);

/// The checkpoint that a decoder must load on `device`. For w8a8 its matrices are rounded to 8 bits
/// (see w8a8_weights.hpp), except the position table, an embedding that is not also the output
/// head, and a tied embedding that is quantised already. For all other compute types it is
/// `weights` itself.
std::shared_ptr<const checkpoint> weights_for(gpu::compute_type compute, const model_spec& spec,
                                              std::shared_ptr<const checkpoint> weights,
                                              const gpu::device_info& device);

/// The weight kind that most values of the checkpoint's matrices have: "Q4_1", "F16", ...
std::string main_kind(const checkpoint& weights);

} // namespace twill::models
