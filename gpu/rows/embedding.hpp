// Rows of a packed matrix as f32: token embeddings and learned positions. Executor thread only.
#pragma once

#include <cstdint>

#include "gpu/device.hpp"
#include "gpu/linear/packed_matrix.hpp"

namespace twill::gpu {

/// out[i] = table[ids[i]], or out[i] += table[ids[i]] with `accumulate`, which learned position
/// embeddings use. The table may be the matrix of the language-model head. An id outside the table
/// counts as a row of zeros. The table must not have a column order (weight_source::column_order).
void embedding(device& dev, const packed_matrix& table, const std::int32_t* ids, // (n) device
               tensor_ref out,                                                   // (n, cols) f32
               bool accumulate = false);

/// ids[i] = drawn[from[i]] where from[i] is not -1. A step thus takes the tokens that the previous
/// step sampled; they stay in device memory and do not pass through the host.
void feed_tokens(device& dev, std::int32_t* ids,             // (n) device
                 const std::int32_t* from,                   // (n) device
                 std::int64_t n, const std::int32_t* drawn); // device

} // namespace twill::gpu
