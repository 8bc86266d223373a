#include "models/families/llama.hpp"

#include "models/families/common.hpp"
#include "models/families/rotary.hpp"

namespace twill::models::families {
namespace {

tensor_names llama_names() {
  tensor_names n;
  n.embedding = "model.embed_tokens.weight";
  n.head = "lm_head.weight";
  n.final_norm = "model.norm.weight";
  n.attention_norm = "model.layers.{}.input_layernorm.weight";
  n.q = "model.layers.{}.self_attn.q_proj.weight";
  n.k = "model.layers.{}.self_attn.k_proj.weight";
  n.v = "model.layers.{}.self_attn.v_proj.weight";
  n.o = "model.layers.{}.self_attn.o_proj.weight";
  n.mlp_norm = "model.layers.{}.post_attention_layernorm.weight";
  n.gate = "model.layers.{}.mlp.gate_proj.weight";
  n.up = "model.layers.{}.mlp.up_proj.weight";
  n.down = "model.layers.{}.mlp.down_proj.weight";
  n.ignored = {"model.layers.{}.self_attn.rotary_emb.inv_freq"};
  return n;
}

/// Which layers have the window: `layer_types` where given, else those from max_window_layers on.
void read_windowed_layers(config_reader& config, model_spec& spec) {
  const auto first = config.size_or({"max_window_layers"}, spec.n_layers);
  const value* types = config.find("layer_types");
  const value_list* list = types == nullptr ? nullptr : types->as_list();
  if (types != nullptr &&
      (list == nullptr || list->size() != static_cast<std::size_t>(spec.n_layers)))
    return config.fail(errc::bad_metadata, "`layer_types` must have one entry per layer");
  for (std::int32_t l = 0; l < spec.n_layers; ++l)
    spec.windowed.push_back(list == nullptr ? l >= first
                                            : (*list)[static_cast<std::size_t>(l)] ==
                                                  value("sliding_attention"));
}

/// All that these families share; `config` collects the failures.
model_spec shared_spec(const char* family, config_reader& config, const checkpoint& weights) {
  model_spec spec;
  spec.family = family;
  spec.names = llama_names();
  spec.n_layers = config.size({"num_hidden_layers"});
  spec.hidden_size = spec.embedding_size = config.size({"hidden_size"});
  spec.n_heads = config.size({"num_attention_heads"});
  spec.n_kv_heads = config.size_or({"num_key_value_heads"}, spec.n_heads);
  spec.mlp_size = config.size({"intermediate_size"});
  spec.head_dim = config.size_or({"head_dim"}, spec.hidden_size / spec.n_heads);
  spec.context_length = config.size_or({"max_position_embeddings"}, 2048);
  spec.norm_epsilon = static_cast<float>(config.number_or({"rms_norm_eps"}, 1e-6));
  spec.activation = read_activation(config, "hidden_act", "silu");
  set_attention_scale(spec);
  read_vocabulary(config, weights, spec, false);
  if (config.ok()) read_rotary(config, spec);
  return spec;
}

result<model_spec> finished(const config_reader& config, model_spec spec) {
  if (!config.ok()) return config.outcome().error();
  if (auto valid = validate(spec); !valid.ok()) return valid.error();
  return spec;
}

/// Qwen's windows are off unless asked for.
void read_qwen_window(config_reader& config, model_spec& spec) {
  if (!config.flag_or("use_sliding_window", false)) return;
  spec.window = config.size_or({"sliding_window"}, 0);
  read_windowed_layers(config, spec);
}

} // namespace

result<model_spec> llama_spec(const value& json, const checkpoint& weights) {
  config_reader config(json);
  model_spec spec = shared_spec("llama", config, weights);
  spec.qkv_bias = spec.o_bias =
      config.flag_or("attention_bias", false) ? bias_rule::required : bias_rule::none;
  spec.mlp_bias = config.flag_or("mlp_bias", false) ? bias_rule::required : bias_rule::none;
  return finished(config, std::move(spec));
}

result<model_spec> mistral_spec(const value& json, const checkpoint& weights) {
  config_reader config(json);
  model_spec spec = shared_spec("mistral", config, weights);
  // The published default, 4096, is for files that do not have the key; null means no window.
  const bool absent = json.find("sliding_window") == nullptr;
  spec.window = absent ? 4096 : config.size_or({"sliding_window"}, 0);
  return finished(config, std::move(spec));
}

result<model_spec> qwen2_spec(const value& json, const checkpoint& weights) {
  config_reader config(json);
  model_spec spec = shared_spec("qwen2", config, weights);
  spec.qkv_bias = bias_rule::required;
  read_qwen_window(config, spec);
  return finished(config, std::move(spec));
}

result<model_spec> qwen3_spec(const value& json, const checkpoint& weights) {
  config_reader config(json);
  model_spec spec = shared_spec("qwen3", config, weights);
  spec.names.q_norm = "model.layers.{}.self_attn.q_norm.weight";
  spec.names.k_norm = "model.layers.{}.self_attn.k_norm.weight";
  spec.qkv_bias = spec.o_bias =
      config.flag_or("attention_bias", false) ? bias_rule::required : bias_rule::none;
  read_qwen_window(config, spec);
  return finished(config, std::move(spec));
}

} // namespace twill::models::families
