// tensor_roles: which tensors of a checkpoint a spec gives a role, and which matrices make up each
// projection. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/checkpoint/checkpoint.hpp"
#include "models/decoder/projection.hpp"
#include "models/spec.hpp"

namespace twill::models {

/// Queries, keys and values of a layer: one fused matrix, or three.
std::vector<matrix_role> qkv_roles(const model_spec& spec, std::int32_t layer);
/// What comes before the activation: gate and up (fused or not), or up alone.
std::vector<matrix_role> up_roles(const model_spec& spec, std::int32_t layer);
matrix_role o_role(const model_spec& spec, std::int32_t layer);
matrix_role down_role(const model_spec& spec, std::int32_t layer);

/// A tensor that a spec knows.
struct tensor_role {
  std::string name;
  std::vector<std::int64_t> shape; ///< empty: never read, so any
  bool required = true;
};

/// Every tensor that may be in a checkpoint of this spec.
std::vector<tensor_role> tensor_roles(const model_spec& spec);

/// Fails with missing_tensor or bad_tensor.
result<nothing> check_shape(const checkpoint& weights, const std::string& name,
                            const std::vector<std::int64_t>& shape);

/// Presence, shape and element type; `unsupported` for elements that are no numbers.
result<nothing> check_role(const checkpoint& weights, const tensor_role& role);

} // namespace twill::models
