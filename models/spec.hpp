// model_spec: everything about a decoder that differs between families, as data.
//
// A family is a spec plus a table of tensor names; models/decoder runs any spec. Plain value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/ops/attention.hpp"

namespace twill::models {

struct model_spec {
  std::string family;         ///< "llama", ...
  std::int32_t vocab_size = 0;
  std::int32_t hidden_size = 0;
  std::int32_t n_layers = 0;
  std::int32_t n_heads = 0;
  std::int32_t n_kv_heads = 0;
  std::int32_t head_dim = 0;
  std::int32_t mlp_size = 0;
  std::int32_t context_length = 0; ///< positions the model was trained for
  float norm_epsilon = 1e-5f;
  gpu::rope_kind rope = gpu::rope_kind::none;
  std::int32_t rotary_dim = 0;     ///< leading dimensions of a head that rotate
  std::vector<float> inv_freq;     // (rotary_dim / 2), scaling already applied
  float attention_scale = 0;       ///< 1 / sqrt(head_dim) unless the family says otherwise
  std::int32_t window = 0;         ///< sliding window in tokens; 0: none
  bool tied_head = false;          ///< the head is the embedding matrix
};

} // namespace twill::models
