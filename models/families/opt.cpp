#include "models/families/opt.hpp"

#include <string>

#include "models/families/common.hpp"

namespace twill::models::families {
namespace {

constexpr std::int32_t first_position_row = 2;

tensor_names opt_names(const std::string& root) {
  const std::string layer = root + "layers.{}.";
  tensor_names n;
  n.embedding = root + "embed_tokens.weight";
  n.positions = root + "embed_positions.weight";
  n.head = "lm_head.weight";
  n.attention_norm = layer + "self_attn_layer_norm.weight";
  n.q = layer + "self_attn.q_proj.weight";
  n.k = layer + "self_attn.k_proj.weight";
  n.v = layer + "self_attn.v_proj.weight";
  n.o = layer + "self_attn.out_proj.weight";
  n.mlp_norm = layer + "final_layer_norm.weight";
  n.up = layer + "fc1.weight";
  n.down = layer + "fc2.weight";
  return n;
}

} // namespace

result<model_spec> opt_spec(const value& json, const checkpoint& weights) {
  std::string root = "model.decoder.";
  for (const char* other : {"decoder.", "model.model.decoder."})
    if (weights.find(root + "embed_tokens.weight") == nullptr &&
        weights.find(std::string(other) + "embed_tokens.weight") != nullptr)
      root = other;

  config_reader config(json);
  model_spec spec;
  spec.family = "opt";
  spec.names = opt_names(root);
  spec.n_layers = config.size({"num_hidden_layers"});
  spec.hidden_size = config.size({"hidden_size"});
  spec.embedding_size = config.size_or({"word_embed_proj_dim"}, spec.hidden_size);
  spec.n_heads = spec.n_kv_heads = config.size({"num_attention_heads"});
  spec.head_dim = spec.hidden_size / spec.n_heads;
  spec.mlp_size = config.size({"ffn_dim"});
  spec.context_length = spec.most_positions = config.size({"max_position_embeddings"});
  spec.position_offset = first_position_row;
  spec.norm = norm_kind::layer;
  spec.norm_epsilon = 1e-5f;
  spec.norms =
      config.flag_or("do_layer_norm_before", true) ? norm_place::before : norm_place::after;
  spec.activation = read_activation(config, "activation_function", "relu");
  spec.gated_mlp = false;
  config.require_flag("layer_norm_elementwise_affine", true);
  spec.qkv_bias = spec.o_bias = spec.mlp_bias =
      config.flag_or("enable_bias", true) ? bias_rule::required : bias_rule::none;
  if (spec.norms == norm_place::before && !config.flag_or("_remove_final_layer_norm", false))
    spec.names.final_norm = root + "final_layer_norm.weight";
  if (spec.embedding_size != spec.hidden_size) {
    spec.names.project_in = root + "project_in.weight";
    spec.names.project_out = root + "project_out.weight";
  }
  set_attention_scale(spec);
  read_vocabulary(config, weights, spec, true);
  if (!config.ok()) return config.outcome().error();
  if (auto valid = validate(spec); !valid.ok()) return valid.error();
  return spec;
}

} // namespace twill::models::families
