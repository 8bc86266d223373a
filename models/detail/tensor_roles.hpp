// tensor_roles: which tensors of a checkpoint a spec gives a role, and which matrices make up each
// projection. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "models/checkpoint.hpp"
#include "models/detail/projection.hpp"
#include "models/spec.hpp"

namespace twill::models {

/// Queries, keys and values of a layer: one fused matrix, or three.
std::vector<matrix_role> qkv_roles(const model_spec& spec, std::int32_t layer);
/// What comes before the activation: gate and up (fused or not), or up alone.
std::vector<matrix_role> up_roles(const model_spec& spec, std::int32_t layer);
matrix_role o_role(const model_spec& spec, std::int32_t layer);
matrix_role down_role(const model_spec& spec, std::int32_t layer);

/// Fails with `unsupported` on a tensor that has no role.
result<nothing> check_all_known(const model_spec& spec, const checkpoint& weights);

} // namespace twill::models
