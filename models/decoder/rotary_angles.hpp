// rotary_angles: cosines and sines of the rows of a step, which all layers share.
//
// Rows with fixed frequencies are computed on the device. Rows whose frequencies grew are rare,
// since their sequence is past the training length; they are computed on the host in double and
// copied. Which of the two applies depends on the row alone. Owned by the decoder's thread.
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
  /// Fills cos and sin; does nothing for a spec without rotary positions. Fails where the device is
  /// lost.
  result<nothing> set(gpu::device& dev, const rope_rule& rope, const float* inv_freq,
                      const step_batch& step, const gpu::ragged_batch& batch,
                      gpu::tensor_ref cos,  // (n_tokens, rotary_dim / 2)
                      gpu::tensor_ref sin); // (n_tokens, rotary_dim / 2)

private:
  /// Copies cosines and sines of rows of one sequence to the rows of `to` from `first_row` on.
  result<nothing> copy_grown(gpu::device& dev, const rope_rule& rope, std::int32_t prompt,
                             std::span<const std::int32_t> positions, std::int32_t first_row,
                             const gpu::tensor_ref (&to)[2]);

  std::optional<gpu::pinned_ring> ring_; ///< made when the first row grows
};

} // namespace twill::models
