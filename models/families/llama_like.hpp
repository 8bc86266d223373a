// llama_like: what Llama, Mistral, Qwen2 and Qwen3 share: RMS norm, rotary positions in halves,
// grouped heads, gated MLP. They differ in biases, in norms of query and key heads and in windows.
//
// Pure functions; failures of config keys go to the config_reader.
#pragma once

#include "models/families/config_reader.hpp"
#include "models/families/family.hpp"
#include "models/families/gguf_reader.hpp"
#include "models/synth/family_recipe.hpp"

namespace twill::models::families {

/// The spec without biases, norms of heads and windows.
model_spec llama_like_spec(config_reader& config, const checkpoint& weights);
/// Biases of attention as `attention_bias` says; false when it is absent.
bias_rule attention_bias(config_reader& config);
/// Qwen's sliding windows, which are off unless `use_sliding_window` is set.
void read_qwen_window(config_reader& config, model_spec& spec);

/// The spec of a GGUF file. Converters reorder Llama's rows of Q and K so that rotary pairs adjoin
/// (`interleaved`), and leave those of Qwen as they are (`half_split`).
result<model_spec> gguf_llama_like_spec(const gguf::metadata& meta, const checkpoint& weights,
                                        gpu::rope_kind kind);

// ---- random models ------------------------------------------------------------------------------

/// A preset of Qwen2 or Qwen3, which share vocabulary, epsilon and base frequency.
synth::recipe make_qwen_preset(const synth::recipe& blank, const char* name,
                               const synth::published_shape& sizes, bool tied);

struct llama_like_tensors {
  bool qkv_bias = false;
  bool o_bias = false;
  bool head_norms = false; ///< norms of query and key heads
};
void plan_llama_like(synth::plan_builder& plan, const llama_like_tensors& has);
/// Norm, gate, up and down of one layer's MLP; `at` is what its names begin with.
void plan_llama_mlp(synth::plan_builder& plan, const std::string& at);

/// Members of config.json that not all of these families' folders have.
struct llama_like_keys {
  std::string_view architecture;
  const char* transformers_version = "4.40.1";
  bool llama = false;          ///< _name_or_path and pretraining_tp in place of attention_dropout
  bool attention_bias = false; ///< with rope_scaling
  bool window = false;         ///< sliding_window, null for none
  bool window_switch = false;  ///< Qwen's keys of windows, all off
};
value_object llama_like_config(const synth::recipe& r, const synth::vocabulary& ids,
                               const llama_like_keys& has);

inline constexpr std::pair<std::string_view, std::string_view> llama_gguf_parts[] = {
    {"input_layernorm", "attn_norm"},    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},      {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"}, {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"}, {"post_attention_layernorm", "ffn_norm"},
    {"mlp.gate_proj", "ffn_gate"},       {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
};

/// The layout of a GGUF file; `pairs_rotary_rows` for architectures that rotate neighbours.
constexpr synth::gguf_layout llama_gguf_layout(std::string_view architecture,
                                               bool pairs_rotary_rows) {
  synth::gguf_layout layout;
  layout.architecture = architecture;
  layout.embedding = "model.embed_tokens.weight";
  layout.final_norm = "model.norm.weight";
  layout.head = "lm_head.weight";
  layout.layers = "model.layers.";
  layout.parts = llama_gguf_parts;
  layout.pairs_rotary_rows = pairs_rotary_rows;
  layout.any_head_size = true;
  return layout;
}

} // namespace twill::models::families
