// Rows of a packed matrix as f32: token embeddings and learned positions. Executor thread only.
#pragma once

#include <cstdint>

#include "gpu/device.hpp"
#include "gpu/linear/packed_matrix.hpp"

namespace twill::gpu {

/// Rows of the matrix as f32: out[i] = W[ids[i]] (an embedding that shares the head's memory), or
/// out[i] += W[ids[i]] (learned positions). An id outside the table counts as a row of zeros. The
/// table must have no column order.
void embedding(device& dev, const packed_matrix& table, const std::int32_t* ids, // (n) device
               tensor_ref out,                                                   // (n, cols) f32
               bool accumulate = false);

} // namespace twill::gpu
