// tensor_roles: which tensors a spec expects in a checkpoint, and which matrices form each
// projection. The functions are pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/checkpoint/checkpoint.hpp"
#include "models/decoder/projection.hpp"
#include "models/spec.hpp"

namespace twill::models {

/// The matrices of a layer's queries, keys and values: one fused matrix or three matrices.
std::vector<matrix_role> qkv_roles(const model_spec& spec, std::int32_t layer);
/// The MLP's matrices before its activation: gate and up (fused or not), or up alone.
std::vector<matrix_role> up_roles(const model_spec& spec, std::int32_t layer);
matrix_role o_role(const model_spec& spec, std::int32_t layer);
matrix_role down_role(const model_spec& spec, std::int32_t layer);

/// A tensor that a spec expects or tolerates.
struct tensor_role {
  std::string name;
  std::vector<std::int64_t> shape; ///< empty for a tensor that is never read
  bool required = true;
};

/// Every tensor that a checkpoint of this spec may have.
std::vector<tensor_role> tensor_roles(const model_spec& spec);

/// Checks presence and shape of the role's tensor; fails with missing_tensor or bad_tensor.
result<nothing> check_shape(const checkpoint& weights, const std::string& name,
                            const std::vector<std::int64_t>& shape);

/// Checks presence, shape and element type; `unsupported` for elements that are not numbers.
result<nothing> check_role(const checkpoint& weights, const tensor_role& role);

} // namespace twill::models
