// packed_sizes: what a checkpoint's weights take once packed, without packing them: by their shapes
// and the scales of a few rows.
#pragma once

#include <cstdint>

#include "models/checkpoint/checkpoint.hpp"
#include "models/spec.hpp"

namespace twill::models::offload {

struct packed_sizes {
  std::int64_t tables = 0; ///< embedding, and a head of its own
  std::int64_t layers = 0; ///< the matrices of all layers
  std::int64_t mlps = 0;   ///< of these, what is no part of attention
  std::int64_t small = 0;  ///< norms, biases, positions and projections: always on the device
  std::int64_t weights() const { return tables + layers; }
  std::int64_t all() const { return weights() + small; }
};

packed_sizes packed_sizes_of(const model_spec& spec, const checkpoint& weights);

} // namespace twill::models::offload
