#include "models/families/chatglm.hpp"

#include <string>

#include "models/decoder/frequencies.hpp"
#include "models/families/common.hpp"

namespace twill::models::families {
namespace {

tensor_names chatglm_names() {
  const std::string layer = "transformer.encoder.layers.{}.";
  tensor_names n;
  n.embedding = "transformer.embedding.word_embeddings.weight";
  n.head = "transformer.output_layer.weight";
  n.attention_norm = layer + "input_layernorm.weight";
  n.qkv = layer + "self_attention.query_key_value.weight";
  n.o = layer + "self_attention.dense.weight";
  n.mlp_norm = layer + "post_attention_layernorm.weight";
  n.gate_up = layer + "mlp.dense_h_to_4h.weight";
  n.down = layer + "mlp.dense_4h_to_h.weight";
  n.ignored = {"transformer.rotary_pos_emb.inv_freq"};
  return n;
}

void read_positions(config_reader& config, model_spec& spec) {
  const double ratio = config.number_or({"rope_ratio"}, 1.0);
  if (ratio <= 0 || spec.head_dim < 4 || spec.head_dim > 4096)
    return config.fail(errc::bad_metadata,
                       "`rope_ratio` must be above 0 and the head size in 4..4096, got " +
                           std::to_string(ratio) + " and " + std::to_string(spec.head_dim));
  spec.rope.kind = gpu::rope_kind::interleaved;
  spec.rope.rotary_dim = spec.head_dim / 2;
  const auto freq = plain_frequencies(10000.0 * ratio, spec.rope.rotary_dim);
  spec.rope.inv_freq.assign(freq.begin(), freq.end());
}

} // namespace

result<model_spec> chatglm_spec(const value& json, const checkpoint& weights) {
  config_reader config(json);
  model_spec spec;
  spec.family = "chatglm";
  spec.names = chatglm_names();
  spec.n_layers = config.size({"num_layers", "num_hidden_layers"});
  spec.hidden_size = spec.embedding_size = config.size({"hidden_size"});
  spec.n_heads = config.size({"num_attention_heads"});
  spec.n_kv_heads = config.flag_or("multi_query_attention", false)
                        ? config.size({"multi_query_group_num"})
                        : spec.n_heads;
  spec.head_dim = config.size_or({"kv_channels"}, spec.hidden_size / spec.n_heads);
  spec.mlp_size = config.size({"ffn_hidden_size"});
  spec.context_length = config.size({"seq_length"});
  spec.norm = config.flag_or("rmsnorm", true) ? norm_kind::rms : norm_kind::layer;
  spec.norm_epsilon = static_cast<float>(config.number_or({"layernorm_epsilon"}, 1e-5));
  config.require_flag("original_rope", true);
  // The residual stream is the sum before the norm, unless the config asks for the normed one.
  config.require_flag("apply_residual_connection_post_layernorm", false);
  if (config.flag_or("post_layer_norm", true))
    spec.names.final_norm = "transformer.encoder.final_layernorm.weight";
  const bool all = config.flag_or("add_bias_linear", false);
  spec.o_bias = spec.mlp_bias = all ? bias_rule::required : bias_rule::none;
  spec.qkv_bias =
      all || config.flag_or("add_qkv_bias", false) ? bias_rule::required : bias_rule::none;
  set_attention_scale(spec);
  read_vocabulary(config, weights, spec, false);
  if (config.ok()) read_positions(config, spec);
  if (!config.ok()) return config.outcome().error();
  if (auto valid = validate(spec); !valid.ok()) return valid.error();
  return spec;
}

} // namespace twill::models::families
