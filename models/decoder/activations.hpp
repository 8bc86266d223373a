// activations: the f32 arrays that hold a micro-batch's state between two layers, and the
// description of its current step.
//
// Owned by the decoder's thread. In shapes, n is the number of rows of the step and r the number of
// rows of logits. decoder::forward() uses one `activations`; a block schedule
// (models/offload/plan/block_schedule.hpp) uses one per micro-batch.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/device.hpp"
#include "models/decoder/rotary_angles.hpp"
#include "models/decoder/step_arrays.hpp"
#include "models/errc.hpp"
#include "models/spec.hpp"

namespace twill::models {

struct activations {
  step_arrays step;
  float* hidden = nullptr;      // (n, hidden_size) the residual stream
  float* cos = nullptr;         // (n, rotary_dim / 2)
  float* sin = nullptr;         // (n, rotary_dim / 2)
  float* last_hidden = nullptr; // (r, hidden_size) the rows of `hidden` whose logits or final
                                // states are wanted
  std::int64_t n_rows = 0;      ///< rows of the current step
  std::int64_t n_logits = 0;    ///< rows of last_hidden
  std::int64_t n_hidden = 0; ///< the last n_hidden rows of last_hidden need no logits, only their
                             ///< final hidden states
  /// The KV of the current layer if it is not in the decoder's kv_arena, but passed to
  /// decoder::run() by the caller. Its keys are null if the layer's KV is in the arena.
  gpu::kv_layer staged_kv;
  std::vector<gpu::buffer> memory;

  static result<activations> create(gpu::device& dev, const model_spec& spec,
                                    const step_limits& limits, bool own_hidden = true);
};

} // namespace twill::models
