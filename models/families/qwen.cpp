// Qwen v1 (arXiv:2309.16609): QKV is one matrix with a bias, c_attn; gate and up of the MLP each
// have half of the stated width; beyond the training length, rotary positions use dynamic NTK
// scaling and attention uses log-n scaling.
//
// A GGUF file is computed as llama.cpp computes it. The file has no keys for dynamic NTK scaling,
// for log-n scaling and for the training length (2048 or 8192 tokens). Beyond that length, answers
// therefore differ from those of Qwen's own folder.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "models/decoder/frequencies.hpp"
#include "models/families/common.hpp"
#include "models/families/family.hpp"
#include "models/families/gguf_common.hpp"
#include "models/synth/family_recipe.hpp"

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

// Older files use the key names of GPT-2 (n_embd, n_head, ...).
result<model_spec> qwen_spec(const value& json, const checkpoint& weights) {
  config_reader config(json);
  model_spec spec;
  spec.names = qwen_names();
  spec.n_layers = config.size({"num_hidden_layers", "n_layer"});
  spec.hidden_size = spec.embedding_size = config.size({"hidden_size", "n_embd"});
  spec.n_heads = spec.n_kv_heads = config.size({"num_attention_heads", "n_head"});
  spec.head_dim = config.size_or({"kv_channels"}, spec.hidden_size / spec.n_heads);
  // The config's number is the sum of the widths of gate and up.
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
  return finished(config, std::move(spec));
}

result<model_spec> gguf_qwen_spec(const gguf::metadata& meta, const checkpoint& weights) {
  model_spec spec;
  spec.names = gguf_names(weights);
  spec.names.qkv = "blk.{}.attn_qkv.weight";
  spec.qkv_bias = bias_rule::required;
  gguf_reader file(meta);
  read_gguf_sizes(file, spec);
  // The key, like the model's own config, has the sum of the widths of gate and up.
  if (file.ok() && (spec.mlp_size < 2 || spec.mlp_size % 2 != 0))
    file.fail(errc::bad_metadata, file.quoted("feed_forward_length") +
                                      " must be even and above 0, got " +
                                      std::to_string(spec.mlp_size));
  spec.mlp_size /= 2;
  read_gguf_vocabulary(file, weights, false, spec);
  read_gguf_rotary(file, weights, gpu::rope_kind::half_split, spec);
  return finished(file, std::move(spec));
}

// ---- text ---------------------------------------------------------------------------------------

// make_context of Qwen-7B-Chat encodes role, newline and content separately.
constexpr std::string_view chat_source_text =
    "{% if not messages or messages[0]['role'] != 'system' %}{{ '<|im_start|>system' + CUT + '\\n' "
    "+ CUT + 'You are a helpful assistant.' + '<|im_end|>' + '\\n' }}{% endif %}"
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + CUT + '\\n' + CUT + "
    "message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant' + CUT + '\\n' }}{% endif %}";

std::string folder_template(const chat_source&) {
  return with_cut_marks(chat_source_text);
}

std::string gguf_template(const tokenizer& text) {
  return has_control_token(text, "<|im_start|>") ? with_cut_marks(chat_source_text) : std::string();
}

constexpr std::string_view specials[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
constexpr tiktoken_rules tiktoken = {
    .name = "qwen", .pretokenizer = "qwen2", .specials = specials, .n_extras = 205};

constexpr std::string_view architectures[] = {"QWenLMHeadModel"};
constexpr std::string_view model_types[] = {"qwen"};
constexpr std::string_view gguf_architectures[] = {"qwen"};

// ---- random models ------------------------------------------------------------------------------

void add_presets(std::vector<synth::recipe>& all, const synth::recipe& blank) {
  const auto add = [&](const char* name, const synth::published_shape& sizes) {
    all.push_back(synth::make_preset(blank, name, synth::text_kind::tiktoken,
                                     synth::storage_type::bf16, sizes));
    all.back().norm_epsilon = 1e-6;
  };
  add("qwen-7b", {4096, 32, 32, 32, 11008, 151936, 8192});
  add("qwen-14b", {5120, 40, 40, 40, 13696, 152064, 2048});
}

void plan_tensors(synth::plan_builder& plan) {
  const synth::recipe& r = plan.made_from();
  const std::int64_t h = r.hidden_size, q = std::int64_t{r.head_size()} * r.n_heads;
  plan.table("transformer.wte.weight", r.vocab_size, h, false);
  for (std::int32_t i = 0; i < r.n_layers; ++i) {
    const std::string at = "transformer.h." + std::to_string(i) + ".";
    plan.norm(at + "ln_1.weight");
    plan.biased(at + "attn.c_attn", 3 * q, h, at + "qkv");
    plan.packable(at + "attn.c_proj", h, q, at + "o");
    plan.norm(at + "ln_2.weight");
    plan.packable(at + "mlp.w1", r.mlp_size, h, at + "up");
    plan.packable(at + "mlp.w2", r.mlp_size, h, at + "up");
    plan.packable(at + "mlp.c_proj", h, r.mlp_size, at + "down");
  }
  plan.norm("transformer.ln_f.weight");
  plan.table("lm_head.weight", r.vocab_size, h, true);
}

value_object make_config(const synth::recipe& r, const synth::vocabulary&) {
  return {{"architectures", synth::list_of("QWenLMHeadModel")},
          {"attn_dropout_prob", 0.0},
          {"auto_map", value_object{{"AutoConfig", "configuration_qwen.QWenConfig"},
                                    {"AutoModelForCausalLM", "modeling_qwen.QWenLMHeadModel"}}},
          {"bf16", r.dtype == synth::storage_type::bf16},
          {"emb_dropout_prob", 0.0},
          {"fp16", r.dtype == synth::storage_type::f16},
          {"fp32", r.dtype == synth::storage_type::f32},
          {"hidden_size", r.hidden_size},
          {"intermediate_size", 2 * r.mlp_size}, // the width of gate plus that of up
          {"initializer_range", 0.02},
          {"kv_channels", r.head_size()},
          {"layer_norm_epsilon", r.norm_epsilon},
          {"max_position_embeddings", 4 * r.context_length},
          {"model_type", "qwen"},
          {"no_bias", true},
          {"num_attention_heads", r.n_heads},
          {"num_hidden_layers", r.n_layers},
          {"onnx_safe", nullptr},
          {"rotary_emb_base", 10000},
          {"rotary_pct", 1.0},
          {"scale_attn_weights", true},
          {"seq_length", r.context_length},
          {"tie_word_embeddings", false},
          {"tokenizer_class", "QWenTokenizer"},
          {"transformers_version", "4.32.0"},
          {"use_cache", true},
          {"use_dynamic_ntk", true},
          {"use_flash_attn", "auto"},
          {"use_logn_attn", true},
          {"vocab_size", r.vocab_size}};
}

value_object make_generation_config(const synth::recipe&, const synth::vocabulary& ids) {
  return {{"chat_format", "chatml"},
          {"eos_token_id", ids.eos},
          {"pad_token_id", ids.pad},
          {"max_window_size", 6144},
          {"max_new_tokens", 512},
          {"do_sample", true},
          {"top_k", 0},
          {"top_p", 0.8},
          {"repetition_penalty", 1.1},
          {"transformers_version", "4.31.0"}};
}

constexpr std::pair<std::string_view, std::string_view> gguf_parts[] = {
    {"ln_1", "attn_norm"},      {"attn.c_attn", "attn_qkv"}, {"attn.c_proj", "attn_output"},
    {"ln_2", "ffn_norm"},       {"mlp.w2", "ffn_gate"},      {"mlp.w1", "ffn_up"},
    {"mlp.c_proj", "ffn_down"},
};

constexpr synth::gguf_layout layout = {.architecture = "qwen",
                                       .embedding = "transformer.wte.weight",
                                       .final_norm = "transformer.ln_f.weight",
                                       .head = "lm_head.weight",
                                       .layers = "transformer.h.",
                                       .parts = gguf_parts,
                                       .mlp_factor = 2};

constexpr synth::family_recipe recipe = {.add_presets = add_presets,
                                         .plan = plan_tensors,
                                         .config = make_config,
                                         .generation_config = make_generation_config,
                                         .grouped_heads = false,
                                         .any_head_size = true,
                                         .gguf = &layout};

} // namespace

extern constinit const family qwen = {
    .name = "qwen",
    .architectures = architectures,
    .model_types = model_types,
    .gguf_architectures = gguf_architectures,
    .folder_spec = qwen_spec,
    .gguf_spec = gguf_qwen_spec,
    .tokenizer = {.tiktoken = &tiktoken},
    .chat = {.of_folder = folder_template, .of_gguf = gguf_template},
    .recipe = &recipe};

} // namespace twill::models::families
