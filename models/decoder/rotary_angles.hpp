// rotary_angles: cosines and sines of a step's rows, the same for all layers.
//
// Rows with fixed frequencies are computed on the device. Rows whose frequencies grew are rare (the
// sequence is past the training length): they are computed here, in double, and copied over. Which
// way a row goes depends on that row alone. Owned by the decoder's thread.
#pragma once

#include <vector>

#include "gpu/device.hpp"
#include "gpu/ragged.hpp"
#include "models/decoder/decoder.hpp"
#include "models/spec.hpp"

namespace twill::models {

class rotary_angles {
public:
  /// Fills cos and sin; nothing to do for a spec without rotary positions.
  void set(gpu::device& dev, const rope_rule& rope, const float* inv_freq, const step_input& step,
           const gpu::ragged_batch& batch, gpu::tensor_ref cos, // (n_tokens, rotary_dim / 2)
           gpu::tensor_ref sin);                                // same

private:
  std::vector<float> row_cos_, row_sin_; // (rotary_dim / 2), reused
};

} // namespace twill::models
