// llama_like: code that Llama, Mistral, Qwen2 and Qwen3 share. All have RMS norms, half-split
// rotary positions, grouped key-value heads and a gated MLP. They differ in biases, in norms of the
// query and key heads, and in sliding windows.
//
// Pure functions; they report failures of config keys to the config_reader.
#pragma once

#include "models/families/config_reader.hpp"
#include "models/families/family.hpp"
#include "models/families/gguf_reader.hpp"
#include "models/synth/family_recipe.hpp"

namespace twill::models::families {

/// Returns the spec without biases, head norms and windows; the caller adds those.
model_spec llama_like_spec(config_reader& config, const checkpoint& weights);
/// Returns the rule for the biases of attention: required if `attention_bias` is true, otherwise
/// none.
bias_rule attention_bias(config_reader& config);
/// Reads Qwen's sliding windows, which are off unless `use_sliding_window` is true.
void read_qwen_window(config_reader& config, model_spec& spec);

/// Makes the spec of a GGUF file. Converters reorder the rows of Llama's Q and K so that the two
/// values of a rotary pair are neighbours (`interleaved`), and keep the order of Qwen's rows
/// (`half_split`).
result<model_spec> gguf_llama_like_spec(const gguf::metadata& meta, const checkpoint& weights,
                                        gpu::rope_kind kind);

// ---- random models ------------------------------------------------------------------------------

/// Makes a preset of Qwen2 or Qwen3, which share vocabulary, epsilon and base of the frequencies.
synth::recipe make_qwen_preset(const synth::recipe& blank, const char* name,
                               const synth::published_shape& sizes, bool tied);

struct llama_like_tensors {
  bool qkv_bias = false;
  bool o_bias = false;
  bool head_norms = false; ///< norms of the query and key heads
};
void plan_llama_like(synth::plan_builder& plan, const llama_like_tensors& has);
/// Adds norm, gate, up and down of one layer's MLP; `at` is the prefix of their names.
void plan_llama_mlp(synth::plan_builder& plan, const std::string& at);

/// The members of config.json that only some of these families' folders have.
struct llama_like_keys {
  std::string_view architecture;
  const char* transformers_version = "4.40.1";
  bool llama = false;          ///< the folder has _name_or_path and pretraining_tp, not
                               ///< attention_dropout
  bool attention_bias = false; ///< the folder has attention_bias and rope_scaling
  bool window = false;         ///< the folder has sliding_window, null without a window
  bool window_switch = false;  ///< the folder has Qwen's keys of windows, set to no window
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

/// Makes the description by which tools/twill-synth converts a random Llama-like model to a GGUF
/// file. `pairs_rotary_rows` must be true for architectures whose GGUF files have the two values of
/// a rotary pair in neighbouring rows.
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
