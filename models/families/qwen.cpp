#include "models/families/qwen.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "models/decoder/frequencies.hpp"
#include "models/families/common.hpp"

namespace twill::models::families {
namespace {

tensor_names qwen_names() {
  tensor_names n;
  n.embedding = "transformer.wte.weight";
  n.head = "lm_head.weight";
  n.final_norm = "transformer.ln_f.weight";
  n.attention_norm = "transformer.h.{}.ln_1.weight";
  n.qkv = "transformer.h.{}.attn.c_attn.weight";
  n.o = "transformer.h.{}.attn.c_proj.weight";
  n.mlp_norm = "transformer.h.{}.ln_2.weight";
  n.gate = "transformer.h.{}.mlp.w2.weight"; // c_proj(w1(x) * silu(w2(x)))
  n.up = "transformer.h.{}.mlp.w1.weight";
  n.down = "transformer.h.{}.mlp.c_proj.weight";
  n.ignored = {"transformer.rotary_emb.inv_freq", "transformer.h.{}.attn.rotary_emb.inv_freq",
               "transformer.h.{}.attn.masked_bias", "transformer.h.{}.attn.bias"};
  return n;
}

void read_positions(config_reader& config, model_spec& spec, std::int32_t trained) {
  const double base = config.number_or({"rotary_emb_base", "rope_theta"}, 10000.0);
  const double part = config.number_or({"rotary_pct"}, 1.0);
  if (base <= 1 || part <= 0 || part > 1 || spec.head_dim > 4096)
    return config.fail(errc::bad_metadata, "`rotary_emb_base` must be above 1 and `rotary_pct` in "
                                           "0..1, got " +
                                               std::to_string(base) + " and " +
                                               std::to_string(part));
  spec.rope.kind = gpu::rope_kind::half_split;
  spec.rope.rotary_dim = static_cast<std::int32_t>(spec.head_dim * part);
  const auto freq = plain_frequencies(base, spec.rope.rotary_dim);
  spec.rope.inv_freq.assign(freq.begin(), freq.end());
  spec.rope.base = base;
  spec.rope.trained_length = trained;
  if (config.flag_or("use_dynamic_ntk", true)) spec.rope.growth = rope_growth::prompt_ntk;
  if (config.flag_or("use_logn_attn", true)) spec.log_n_length = trained;
}

} // namespace

result<model_spec> qwen_spec(const value& json, const checkpoint& weights) {
  config_reader config(json);
  model_spec spec;
  spec.family = "qwen";
  spec.names = qwen_names();
  spec.n_layers = config.size({"num_hidden_layers", "n_layer"});
  spec.hidden_size = spec.embedding_size = config.size({"hidden_size", "n_embd"});
  spec.n_heads = spec.n_kv_heads = config.size({"num_attention_heads", "n_head"});
  spec.head_dim = config.size_or({"kv_channels"}, spec.hidden_size / spec.n_heads);
  // The config counts both halves of the MLP pair.
  const std::int32_t both = config.size({"intermediate_size", "ffn_hidden_size"});
  if (both % 2 != 0)
    config.fail(errc::bad_metadata,
                "`intermediate_size` must be even, got " + std::to_string(both));
  spec.mlp_size = std::max(both / 2, 1);
  const std::int32_t longest = config.size_or({"max_position_embeddings", "n_positions"}, 8192);
  const std::int32_t trained = std::max(config.size_or({"seq_length"}, longest), 1);
  spec.context_length = std::max(trained, longest);
  spec.norm_epsilon = static_cast<float>(config.number_or({"layer_norm_epsilon"}, 1e-6));
  spec.qkv_bias = bias_rule::required;
  spec.o_bias = spec.mlp_bias =
      config.flag_or("no_bias", true) ? bias_rule::none : bias_rule::required;
  set_attention_scale(spec);
  if (!config.flag_or("scale_attn_weights", true)) spec.attention_scale = 1;
  read_vocabulary(config, weights, spec, false);
  if (config.ok()) read_positions(config, spec, trained);
  if (!config.ok()) return config.outcome().error();
  if (auto valid = validate(spec); !valid.ok()) return valid.error();
  return spec;
}

} // namespace twill::models::families
