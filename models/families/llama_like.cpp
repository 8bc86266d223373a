#include "models/families/llama_like.hpp"

#include <string>
#include <utility>

#include "models/families/common.hpp"
#include "models/families/gguf_common.hpp"
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
  return n;
}

/// Reads which layers have the sliding window: those that `layer_types` marks, or, if that key is
/// absent, the layers from max_window_layers on.
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

} // namespace

model_spec llama_like_spec(config_reader& config, const checkpoint& weights) {
  model_spec spec;
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

bias_rule attention_bias(config_reader& config) {
  return config.flag_or("attention_bias", false) ? bias_rule::required : bias_rule::none;
}

void read_qwen_window(config_reader& config, model_spec& spec) {
  if (!config.flag_or("use_sliding_window", false)) return;
  spec.window = config.size_or({"sliding_window"}, 0);
  read_windowed_layers(config, spec);
}

result<model_spec> gguf_llama_like_spec(const gguf::metadata& meta, const checkpoint& weights,
                                        gpu::rope_kind kind) {
  model_spec spec;
  spec.names = gguf_names(weights);
  spec.names.rope_factors = "rope_freqs.weight";
  spec.qkv_bias = spec.o_bias = spec.mlp_bias = bias_rule::if_present;
  gguf_reader file(meta);
  read_gguf_sizes(file, spec);
  spec.window = file.size_or("attention.sliding_window", 0);
  if (const double scale = file.number_or("attention.scale", 0); scale != 0)
    spec.attention_scale = static_cast<float>(scale);
  read_gguf_vocabulary(file, weights, true, spec);
  read_gguf_rotary(file, weights, kind, spec);
  return finished(file, std::move(spec));
}

synth::recipe make_qwen_preset(const synth::recipe& blank, const char* name,
                               const synth::published_shape& sizes, bool tied) {
  synth::recipe r = synth::make_preset(blank, name, synth::text_kind::qwen_json,
                                       synth::storage_type::bf16, sizes);
  r.norm_epsilon = 1e-6;
  r.rope_theta = 1000000;
  r.tied_head = tied;
  return r;
}

void plan_llama_mlp(synth::plan_builder& plan, const std::string& at) {
  const synth::recipe& r = plan.made_from();
  plan.norm(at + "post_attention_layernorm.weight");
  plan.packable(at + "mlp.gate_proj", r.mlp_size, r.hidden_size, at + "up");
  plan.packable(at + "mlp.up_proj", r.mlp_size, r.hidden_size, at + "up");
  plan.packable(at + "mlp.down_proj", r.hidden_size, r.mlp_size, at + "down");
}

void plan_llama_like(synth::plan_builder& plan, const llama_like_tensors& has) {
  const synth::recipe& r = plan.made_from();
  const std::int64_t h = r.hidden_size, d = r.head_size();
  const std::int64_t q = d * r.n_heads, kv = d * r.n_kv_heads;
  plan.table("model.embed_tokens.weight", r.vocab_size, h, r.tied_head);
  for (std::int32_t i = 0; i < r.n_layers; ++i) {
    const std::string at = "model.layers." + std::to_string(i) + ".";
    const std::string attention = at + "self_attn.";
    plan.norm(at + "input_layernorm.weight");
    for (const auto& [part, rows] :
         {std::pair<const char*, std::int64_t>{"q_proj", q}, {"k_proj", kv}, {"v_proj", kv}}) {
      plan.packable(attention + part, rows, h, at + "qkv");
      if (has.qkv_bias) plan.bias(attention + part + ".bias", rows);
    }
    plan.packable(attention + "o_proj", h, q, at + "o");
    if (has.o_bias) plan.bias(attention + "o_proj.bias", h);
    if (has.head_norms)
      for (const char* part : {"q_norm.weight", "k_norm.weight"})
        plan.add(attention + part, {d}, 1, 0.1);
    plan_llama_mlp(plan, at);
  }
  plan.norm("model.norm.weight");
  if (!r.tied_head) plan.table("lm_head.weight", r.vocab_size, h, true);
}

value_object llama_like_config(const synth::recipe& r, const synth::vocabulary& ids,
                               const llama_like_keys& has) {
  value_object c;
  if (has.llama) c.emplace_back("_name_or_path", r.preset);
  c.emplace_back("architectures", synth::list_of(has.architecture));
  if (has.attention_bias) c.emplace_back("attention_bias", r.attention_bias);
  if (!has.llama) c.emplace_back("attention_dropout", 0.0);
  synth::append(c, {{"bos_token_id", ids.bos}, {"eos_token_id", ids.eos}});
  if (r.head_dim > 0) c.emplace_back("head_dim", r.head_dim);
  synth::append(c, {{"hidden_act", "silu"},
                    {"hidden_size", r.hidden_size},
                    {"initializer_range", 0.02},
                    {"intermediate_size", r.mlp_size},
                    {"max_position_embeddings", r.context_length}});
  if (has.window_switch) c.emplace_back("max_window_layers", r.n_layers);
  synth::append(c, {{"model_type", r.family->model_types.front()},
                    {"num_attention_heads", r.n_heads},
                    {"num_hidden_layers", r.n_layers},
                    {"num_key_value_heads", r.n_kv_heads}});
  if (has.llama) c.emplace_back("pretraining_tp", 1);
  c.emplace_back("rms_norm_eps", r.norm_epsilon);
  if (has.attention_bias) c.emplace_back("rope_scaling", nullptr);
  c.emplace_back("rope_theta", r.rope_theta);
  if (has.window) c.emplace_back("sliding_window", r.window > 0 ? value(r.window) : value(nullptr));
  if (has.window_switch) c.emplace_back("sliding_window", nullptr);
  synth::append(c, {{"tie_word_embeddings", r.tied_head},
                    {"torch_dtype", synth::torch_name(r.dtype)},
                    {"transformers_version", has.transformers_version},
                    {"use_cache", true}});
  if (has.window_switch) c.emplace_back("use_sliding_window", false);
  c.emplace_back("vocab_size", r.vocab_size);
  return c;
}

} // namespace twill::models::families
