// model_spec: everything about a decoder that differs between families, as data.
//
// A family is a spec plus a table of tensor names; models/decoder runs any spec. Plain value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/ops/attention.hpp"
#include "models/errc.hpp"

namespace twill::models {

/// What a family's checkpoint calls its tensors. "{}" stands for the layer number. A bias, where a
/// checkpoint has one, is named like its matrix with ".bias" in place of ".weight".
struct tensor_names {
  std::string embedding;      // (vocab_size, hidden_size)
  std::string head;           // (vocab_size, hidden_size), absent when tied
  std::string final_norm;     // (hidden_size)
  std::string rope_factors;   // (rotary_dim / 2), read by the family, not by the decoder
  std::string attention_norm; // (hidden_size)
  std::string q;              // (n_heads * head_dim, hidden_size)
  std::string k;              // (n_kv_heads * head_dim, hidden_size)
  std::string v;              // (n_kv_heads * head_dim, hidden_size)
  std::string o;              // (hidden_size, n_heads * head_dim)
  std::string mlp_norm;       // (hidden_size)
  std::string gate;           // (mlp_size, hidden_size)
  std::string up;             // (mlp_size, hidden_size)
  std::string down;           // (hidden_size, mlp_size)
};

struct model_spec {
  std::string family; ///< "llama", ...
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
  std::int32_t rotary_dim = 0; ///< leading dimensions of a head that rotate
  std::vector<float> inv_freq; // (rotary_dim / 2), scaling already applied
  float attention_scale = 0;   ///< 1 / sqrt(head_dim) unless the family says otherwise
  std::int32_t window = 0;     ///< sliding window in tokens; 0: none
  bool tied_head = false;      ///< the head is the embedding matrix
  tensor_names names;

  std::int64_t q_size() const { return std::int64_t{n_heads} * head_dim; }
  std::int64_t kv_size() const { return std::int64_t{n_kv_heads} * head_dim; }
};

/// Checks that the numbers fit together (bad_metadata otherwise).
result<nothing> validate(const model_spec& spec);

/// `pattern` with "{}" replaced by the layer number.
std::string layer_tensor(const std::string& pattern, std::int32_t layer);

/// The bias that belongs to a matrix: ".weight" at the end replaced by ".bias".
std::string bias_of(const std::string& matrix);

} // namespace twill::models
