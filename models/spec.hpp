// model_spec: everything about a decoder that differs between families, as data.
//
// model_spec is a plain value. A family's reader fills it in, and models/decoder runs any spec.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpu/rows/elementwise.hpp"
#include "gpu/rows/rope.hpp"
#include "gpu/tensor.hpp"
#include "models/errc.hpp"

namespace twill::models {

/// What a family's checkpoint calls its tensors. "{}" stands for the layer number. A bias has the
/// name of its matrix or norm with ".bias" in place of ".weight". An empty name means that the
/// family has no such tensor.
struct tensor_names {
  std::string embedding;      // (vocab_size, embedding_size)
  std::string rope_factors;   // (rotary_dim / 2), read by the family, not by the decoder
  std::string positions;      // (context_length + position_offset, hidden_size), learned positions
  std::string project_in;     // (hidden_size, embedding_size)
  std::string project_out;    // (embedding_size, hidden_size)
  std::string head;           // (vocab_size, embedding_size), absent when tied
  std::string final_norm;     // (hidden_size)
  std::string attention_norm; // (hidden_size)
  std::string qkv;            // (q_size + 2 * kv_size, hidden_size): in place of q, k and v
  std::string q;              // (n_heads * head_dim, hidden_size)
  std::string k;              // (n_kv_heads * head_dim, hidden_size)
  std::string v;              // (n_kv_heads * head_dim, hidden_size)
  std::string q_norm;         // (head_dim), RMS norm of each query head
  std::string k_norm;         // (head_dim), RMS norm of each key head
  std::string o;              // (hidden_size, n_heads * head_dim)
  std::string mlp_norm;       // (hidden_size)
  std::string gate_up;        // (2 * mlp_size, hidden_size): in place of gate and up
  std::string gate;           // (mlp_size, hidden_size), gated MLPs
  std::string up;             // (mlp_size, hidden_size)
  std::string down;           // (hidden_size, mlp_size)
};

enum class norm_kind : std::uint8_t {
  rms,   ///< x / rms(x) * weight
  layer, ///< (x - mean) / deviation * weight + bias
};

enum class norm_place : std::uint8_t {
  before, ///< norms stand before attention and MLP; the residual stream itself is not normed
  after,  ///< norms stand after each residual sum, as in the original Transformer
};

enum class bias_rule : std::uint8_t {
  none,       ///< there is no bias; a tensor of its name is refused
  required,   ///< a missing bias is an error
  if_present, ///< the checkpoint decides, since a GGUF file's metadata do not say
};

/// How rotary frequencies depend on the length of a sequence. L is the prompt's length, p a
/// position, and `trained` is rope_rule::trained_length. A row's angles depend on L and p alone, so
/// dividing a prompt into chunks or batching it with others does not change them.
enum class rope_growth : std::uint8_t {
  none,
  /// Qwen v1's dynamic NTK: alpha = max(2^ceil(log2(L / trained) + 1) - 1, 1), for all positions.
  prompt_ntk,
  /// Hugging Face's "dynamic": the base is multiplied by
  /// (factor * n / trained - (factor - 1))^(d / (d - 2)),
  /// where d is rotary_dim and n = max(L, p + 1, trained).
  length_ntk,
};

struct rope_rule {
  gpu::rope_kind kind = gpu::rope_kind::none;
  std::int32_t rotary_dim = 0; ///< leading dimensions of a head that rotate
  std::vector<float> inv_freq; // (rotary_dim / 2), fixed scaling applied
  float magnitude = 1;         ///< factor on cos and sin (YaRN)
  rope_growth growth = rope_growth::none;
  double base = 0;                 ///< base of the frequencies; used only with a growth
  double factor = 1;               ///< factor of length_ntk
  std::int32_t trained_length = 0; ///< in tokens; longer sequences change the frequencies
};

struct model_spec {
  std::string family; ///< the family's name, for messages
  std::int32_t vocab_size = 0;
  std::int32_t hidden_size = 0;
  std::int32_t embedding_size = 0; ///< width of embedding and head; often hidden_size
  std::int32_t n_layers = 0;
  std::int32_t n_heads = 0;
  std::int32_t n_kv_heads = 0;
  std::int32_t head_dim = 0;
  std::int32_t mlp_size = 0;
  std::int32_t context_length = 0; ///< number of positions for which the model was made
  std::int32_t most_positions = 0; ///< rows of the table of learned positions; 0: any number of
                                   ///< positions

  norm_kind norm = norm_kind::rms;
  norm_place norms = norm_place::before;
  float norm_epsilon = 1e-5f;
  gpu::activation activation = gpu::activation::silu;
  bool gated_mlp = true; ///< the MLP computes act(gate) * up, otherwise act(up)
  bias_rule qkv_bias = bias_rule::none;
  bias_rule o_bias = bias_rule::none;
  bias_rule mlp_bias = bias_rule::none;

  rope_rule rope;
  std::int32_t position_offset = 0; ///< the row of position 0 in a table of learned positions
  std::vector<float> alibi_slopes;  // (n_heads), empty: no ALiBi
  float attention_scale = 0;        ///< 1 / sqrt(head_dim) unless the family says otherwise
  std::int32_t window = 0;          ///< sliding window in tokens; 0: none
  std::vector<bool> windowed;       // (n_layers), layers with the window; empty: all
  std::int32_t log_n_length = 0;    ///< queries at p >= n are scaled by ln(p + 1) / ln(n); 0: never

  /// The type of weights and activations before any quantisation, as the model's configuration
  /// states it: f32, f16 or bf16. None where the configuration does not state it.
  std::optional<gpu::dtype> stated_type;

  bool tied_head = false;       ///< the head is the embedding matrix
  bool normalised_head = false; ///< each row of the head is scaled to length 1
  tensor_names names;

  std::int64_t q_size() const { return std::int64_t{n_heads} * head_dim; }
  std::int64_t kv_size() const { return std::int64_t{n_kv_heads} * head_dim; }
  /// Prompts up to this length may share the keys of a common prefix. Longer prompts may not,
  /// because their keys depend on the length of the whole prompt. 0 means that prefixes may always
  /// be shared.
  std::int32_t shareable_length() const {
    return rope.growth == rope_growth::none ? 0 : rope.trained_length;
  }
};

/// Checks that the numbers fit together (bad_metadata otherwise).
result<nothing> validate(const model_spec& spec);

/// `pattern` with "{}" replaced by the layer number.
std::string layer_tensor(const std::string& pattern, std::int32_t layer);

/// The bias that belongs to a matrix or norm: ".weight" at the end replaced by ".bias".
std::string bias_of(const std::string& matrix);

} // namespace twill::models
