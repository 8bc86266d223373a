// opt: OPT (arXiv:2205.01068): learned positions from row 2 on, layer norms, ReLU, tied head.
//
// The 350M model norms after each residual sum, has no final norm, and projects from and to a
// smaller embedding. Tensor names come with and without "model." in front.
#pragma once

#include "config/base/value.hpp"
#include "models/checkpoint/checkpoint.hpp"
#include "models/spec.hpp"

namespace twill::models::families {

result<model_spec> opt_spec(const value& config, const checkpoint& weights);

} // namespace twill::models::families
