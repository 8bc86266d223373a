#include "models/families/baichuan.hpp"

#include <bit>
#include <cmath>

#include "models/families/common.hpp"
#include "models/families/rotary.hpp"

namespace twill::models::families {
namespace {

constexpr std::int32_t hidden_of_7b = 4096;
constexpr std::int32_t hidden_of_13b = 5120;
constexpr std::int32_t vocabulary_of_baichuan1 = 64000;

tensor_names baichuan_names() {
  tensor_names n;
  n.embedding = "model.embed_tokens.weight";
  n.head = "lm_head.weight";
  n.final_norm = "model.norm.weight";
  n.attention_norm = "model.layers.{}.input_layernorm.weight";
  n.qkv = "model.layers.{}.self_attn.W_pack.weight";
  n.o = "model.layers.{}.self_attn.o_proj.weight";
  n.mlp_norm = "model.layers.{}.post_attention_layernorm.weight";
  n.gate = "model.layers.{}.mlp.gate_proj.weight";
  n.up = "model.layers.{}.mlp.up_proj.weight";
  n.down = "model.layers.{}.mlp.down_proj.weight";
  n.ignored = {"model.layers.{}.self_attn.rotary_emb.inv_freq", "model.future_mask",
               "model.alibi_mask"};
  return n;
}

} // namespace

std::vector<float> alibi_slopes(std::int32_t n_heads) {
  const auto power = static_cast<std::int32_t>(std::bit_floor(static_cast<std::uint32_t>(n_heads)));
  std::vector<float> slopes;
  for (std::int32_t i = 0; i < power; ++i)
    slopes.push_back(static_cast<float>(std::exp2(-8.0 * (i + 1) / power)));
  for (std::int32_t i = 0; power + i < n_heads; ++i)
    slopes.push_back(static_cast<float>(std::exp2(-4.0 * (2 * i + 1) / power)));
  return slopes;
}

result<model_spec> baichuan_spec(const value& json, const checkpoint& weights) {
  config_reader config(json);
  model_spec spec;
  spec.family = "baichuan";
  spec.names = baichuan_names();
  spec.n_layers = config.size({"num_hidden_layers"});
  spec.hidden_size = spec.embedding_size = config.size({"hidden_size"});
  spec.n_heads = spec.n_kv_heads = config.size({"num_attention_heads"});
  spec.head_dim = spec.hidden_size / spec.n_heads;
  spec.mlp_size = config.size({"intermediate_size"});
  spec.context_length = config.size_or({"max_position_embeddings", "model_max_length"}, 4096);
  spec.norm_epsilon = static_cast<float>(config.number_or({"rms_norm_eps"}, 1e-6));
  spec.activation = read_activation(config, "hidden_act", "silu");
  set_attention_scale(spec);
  read_vocabulary(config, weights, spec, false);
  spec.normalised_head = config.size_or({"vocab_size"}, spec.vocab_size) != vocabulary_of_baichuan1;
  const bool rotary =
      spec.hidden_size == hidden_of_7b ||
      (spec.hidden_size != hidden_of_13b && config.find("max_position_embeddings") != nullptr);
  if (config.ok() && rotary) read_rotary(config, spec);
  if (config.ok() && !rotary && spec.n_heads <= 1 << 12)
    spec.alibi_slopes = alibi_slopes(spec.n_heads);
  if (!config.ok()) return config.outcome().error();
  if (auto valid = validate(spec); !valid.ok()) return valid.error();
  return spec;
}

} // namespace twill::models::families
