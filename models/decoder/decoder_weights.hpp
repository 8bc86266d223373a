// decoder_weights: all weights of a decoder, checked against its spec and packed. Without
// offloading all of them are on the device. With offloading each matrix is in device memory, in
// host memory or on disk, and a weight_stream copies matrices to the device before they are used.
//
// Owned by the decoder's thread; must not outlive the device.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "gpu/device.hpp"
#include "gpu/linear/packed_matrix.hpp"
#include "models/checkpoint/checkpoint.hpp"
#include "models/decoder/norm.hpp"
#include "models/decoder/projection.hpp"
#include "models/offload/streams/weight_stream.hpp"
#include "models/spec.hpp"

namespace twill::models {

struct layer_weights {
  norm_weights attention_norm; // (hidden_size)
  projection qkv;              // (q_size + 2 * kv_size, hidden_size)
  gpu::buffer q_norm, k_norm;  // (head_dim) f32, or empty
  projection o;                // (hidden_size, q_size)
  norm_weights mlp_norm;       // (hidden_size)
  projection up;               // (mlp_size, hidden_size), gated: (2 * mlp_size, hidden_size)
  projection down;             // (hidden_size, mlp_size)
  std::int32_t group = -1; ///< the layer's transfer group in the stream, to be acquired before use;
                           ///< -1: the weights are always on the device
  std::int32_t mlp_group = -1; ///< the transfer group of the MLP, if attention and MLP are
                               ///< transferred separately
};

struct decoder_weights {
  gpu::packed_matrix embedding; // (vocab_size, embedding_size); empty with a stream
  gpu::packed_matrix positions; // (positions, hidden_size); empty without learned positions
  projection project_in;        // (hidden_size, embedding_size); empty unless projected
  projection project_out;       // (embedding_size, hidden_size); empty unless projected
  gpu::packed_matrix head;      // (vocab_size, embedding_size); empty when tied
  gpu::compute_type head_compute = gpu::compute_type::f32;
  gpu::buffer head_factors; // (vocab_size) f32: 1 / length of the head's rows; or empty
  norm_weights final_norm;  // (hidden_size); empty where the family has none
  gpu::buffer inv_freq;     // (rotary_dim / 2) f32
  gpu::buffer alibi_slopes; // (n_heads) f32, or empty
  std::vector<layer_weights> layers;

  /// Copies weights that are not on the device to the device before they are used; null when all
  /// weights stay on the device. With a stream, the embedding and the output head are cut into
  /// parts, and a head that is tied to the embedding uses the embedding's parts.
  std::unique_ptr<offload::weight_stream> stream;
  std::vector<offload::table_part> embedding_parts, head_parts;
  std::unique_ptr<offload::embedding_cache> embedding_rows;

  bool tied() const { return head_parts.empty(); }
  const std::vector<offload::table_part>& parts_of_head() const {
    return tied() ? embedding_parts : head_parts;
  }
  const gpu::packed_matrix& head_matrix() const { return head ? head : embedding; }
  /// Bytes of weights on the device, including the buffers that receive streamed weights.
  std::int64_t bytes() const;
};

/// The lengths of a normalised head's rows are measured on f32 copies of this many rows at a time.
inline constexpr std::int64_t head_rows_at_once = 64;

/// Fails if a tensor is missing, has a wrong shape, or has no role in the spec: an unknown tensor
/// means that the model computes something else than the spec says. `offload` says which share of
/// the weights is kept in which tier; null keeps all of them on the device. `most_rows` is the
/// number of rows of the largest step.
result<decoder_weights> load_weights(gpu::device& dev, const model_spec& spec,
                                     const checkpoint& weights, gpu::compute_type compute,
                                     const offload::offload_options* offload,
                                     std::int64_t most_rows,
                                     const std::function<void(double)>& progress);

} // namespace twill::models
