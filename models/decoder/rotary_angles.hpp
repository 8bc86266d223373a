// rotary_angles: cosines and sines of the rows of a step, which all layers share.
//
// Rows with fixed frequencies are computed on the device. Rows whose frequencies grew are rare,
// since their sequence is past the training length; they are computed on the host in double and
// copied. Which of the two applies depends on the row alone. Owned by the decoder's thread.
#pragma once

#include <vector>

#include "gpu/device.hpp"
#include "gpu/ragged.hpp"
#include "models/decoder/decoder.hpp"
#include "models/spec.hpp"

namespace twill::models {

class rotary_angles {
public:
  /// Fills cos and sin; does nothing for a spec without rotary positions.
  void set(gpu::device& dev, const rope_rule& rope, const float* inv_freq, const step_batch& step,
           const gpu::ragged_batch& batch, gpu::tensor_ref cos, // (n_tokens, rotary_dim / 2)
           gpu::tensor_ref sin);                                // (n_tokens, rotary_dim / 2)

private:
  std::vector<float> row_cos_, row_sin_; // (rotary_dim / 2), reused
};

} // namespace twill::models
