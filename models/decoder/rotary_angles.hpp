// rotary_angles: computes the cosines and sines of a step's rows, once for all layers.
//
// All rows are first computed on the device with the model's fixed frequencies. For some models the
// frequencies change when a sequence becomes longer than the training length (rope_growth in
// models/spec.hpp). Rows of such long sequences are rare; they are computed anew on the host in
// double precision and copied to the device. Whether a row's frequencies have changed depends on
// its position and its prompt's length alone, not on the other rows of the step. Owned by the
// decoder's thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "gpu/device.hpp"
#include "gpu/pinned_ring.hpp"
#include "gpu/ragged.hpp"
#include "models/decoder/decoder.hpp"
#include "models/spec.hpp"

namespace twill::models {

class rotary_angles {
public:
  /// Fills cos and sin. Does nothing for a spec without rotary positions. Fails if the device is
  /// lost.
  result<nothing> set(gpu::device& dev, const rope_rule& rope, const float* inv_freq,
                      const step_batch& step, const gpu::ragged_batch& batch,
                      gpu::tensor_ref cos,  // (n_tokens, rotary_dim / 2)
                      gpu::tensor_ref sin); // (n_tokens, rotary_dim / 2)

private:
  /// Computes cosines and sines for rows of one sequence whose frequencies changed with its length,
  /// and copies them to `to` (cos, sin), beginning at row `first_row`.
  result<nothing> copy_grown(gpu::device& dev, const rope_rule& rope, std::int32_t prompt,
                             std::span<const std::int32_t> positions, std::int32_t first_row,
                             const gpu::tensor_ref (&to)[2]);

  std::optional<gpu::pinned_ring> ring_; ///< created when a step first has a row with grown
                                         ///< frequencies
};

} // namespace twill::models
