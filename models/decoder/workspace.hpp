// workspace: f32 activations within a layer, sized once for the largest step.
//
// Owned by the decoder's thread. In shapes, n is the number of rows of the step and r the number of
// rows of logits.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/device.hpp"
#include "models/errc.hpp"
#include "models/spec.hpp"

namespace twill::models {

struct workspace {
  float* normed = nullptr;        // (max(n, r), hidden_size)
  float* qkv = nullptr;           // (n, q_size + 2 * kv_size)
  float* attended = nullptr;      // (n, q_size)
  float* embedded = nullptr;      // (max(n, r), embedding_size), projected models only
  float* gate_up = nullptr;       // (max(n, r), 2 * mlp_size), gated MLPs only
  float* activated = nullptr;     // (max(n, r), mlp_size)
  float* last_attended = nullptr; // (r, q_size)
  float* logits = nullptr;        // (r, vocab_size)
  std::vector<gpu::buffer> memory;

  static result<workspace> create(gpu::device& dev, const model_spec& spec, std::int64_t max_tokens,
                                  std::int64_t max_logit_rows);
};

} // namespace twill::models
