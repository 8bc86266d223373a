// ChatGLM2 and ChatGLM3 (arXiv:2406.12793): groups of query heads share key-value heads, the first
// half of each head has interleaved rotary positions, QKV is one matrix with a bias, and gate and
// up are one matrix.
//
// rope_ratio multiplies the base of the rotary frequencies, as the code of ChatGLM3-6B-32k does.
// GGUF files of GLM-4 that were written before GLM-4 had its own architecture name also name this
// architecture.
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

result<model_spec> chatglm_spec(const value& json, const checkpoint& weights) {
  config_reader config(json);
  model_spec spec;
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
  // A model that sets this flag adds the output of each norm to the residual stream, instead of the
  // norm's input.
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
  return finished(config, std::move(spec));
}

result<model_spec> gguf_chatglm_spec(const gguf::metadata& meta, const checkpoint& weights) {
  model_spec spec;
  spec.names = gguf_names(weights);
  spec.names.gate_up = "blk.{}.ffn_up.weight"; // the gate's rows precede those of up
  spec.qkv_bias = bias_rule::if_present;
  gguf_reader file(meta);
  read_gguf_sizes(file, spec);
  read_gguf_vocabulary(file, weights, true, spec);
  read_gguf_rotary(file, weights, gpu::rope_kind::interleaved, spec);
  return finished(file, std::move(spec));
}

// ---- text ---------------------------------------------------------------------------------------

// tokenization_chatglm.py appends these tokens to the vocabulary of tokenizer.model, in this order.
// All but the first five are role tokens. Text from a user becomes a role token only if special
// tokens are parsed in the text, and never becomes one of the first five tokens. The model ends its
// turn with the role token of the user or of a tool's output.
constexpr appended_token appended[] = {
    {.text = "[MASK]", .for_templates = true},
    {.text = "[gMASK]", .for_templates = true, .in_prefix = true},
    {.text = "[sMASK]", .for_templates = true},
    {.text = "sop", .for_templates = true, .in_prefix = true},
    {.text = "eop", .for_templates = true},
    {.text = "<|system|>"},
    {.text = "<|user|>", .ends_generation = true},
    {.text = "<|assistant|>"},
    {.text = "<|observation|>", .ends_generation = true},
};

// build_chat_input of chatglm3-6b encodes each role's line and each content separately. The
// template does not print the prefix [gMASK] sop, because the tokenizer adds it. The model itself
// generates the newline after the last role.
constexpr std::string_view roles =
    "{% for message in messages %}"
    "{% if message['role'] == 'system' %}{{ '<|system|>' }}"
    "{% elif message['role'] == 'user' %}{{ '<|user|>' }}"
    "{% elif message['role'] == 'assistant' %}{{ '<|assistant|>' }}"
    "{% elif message['role'] in ['observation', 'tool'] %}{{ '<|observation|>' }}"
    "{% else %}{{ raise_exception('Roles are system, user, assistant, observation and tool') }}"
    "{% endif %}"
    "{{ message['metadata'] | default('') + '\\n' + CUT + message['content'] }}"
    "{% if message['role'] == 'system' and message['tools'] %}"
    "{{ '\\n' + message['tools'] | tojson(indent=4) }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}";

std::string folder_template(const chat_source&) {
  return with_cut_marks(roles);
}

/// The template begins with the prefix [gMASK] sop, because the tokenizer of a GGUF file does not
/// add the prefix, unlike the tokenizer of a folder.
std::string gguf_template(const tokenizer& text) {
  const bool fits = has_control_token(text, "[gMASK]") && has_control_token(text, "<|user|>");
  return fits ? with_cut_marks("[gMASK]sop" + std::string(roles)) : std::string();
}

// A folder names the class from which it was saved: the class of the base model or that of
// fine-tuned models.
constexpr std::string_view architectures[] = {"ChatGLMModel", "ChatGLMForConditionalGeneration"};
constexpr std::string_view model_types[] = {"chatglm"};
constexpr std::string_view gguf_architectures[] = {"chatglm"};

// ---- random models ------------------------------------------------------------------------------

void add_presets(std::vector<synth::recipe>& all, const synth::recipe& blank) {
  synth::recipe r =
      synth::make_preset(blank, "chatglm3-6b", synth::text_kind::chatglm, synth::storage_type::f16,
                         {4096, 28, 32, 2, 13696, 65024, 8192});
  all.push_back(r);
  r.preset = "chatglm3-6b-32k";
  r.context_length = 32768;
  r.rope_ratio = 50;
  all.push_back(r);
}

void plan_tensors(synth::plan_builder& plan) {
  const synth::recipe& r = plan.made_from();
  const std::int64_t h = r.hidden_size, d = r.head_size();
  const std::int64_t q = d * r.n_heads, kv = d * r.n_kv_heads;
  plan.table("transformer.embedding.word_embeddings.weight", r.vocab_size, h, false);
  plan.frequencies("transformer.rotary_pos_emb.inv_freq", d / 4, 10000 * r.rope_ratio);
  for (std::int32_t i = 0; i < r.n_layers; ++i) {
    const std::string at = "transformer.encoder.layers." + std::to_string(i) + ".";
    plan.norm(at + "input_layernorm.weight");
    plan.biased(at + "self_attention.query_key_value", q + 2 * kv, h, at + "qkv");
    plan.packable(at + "self_attention.dense", h, q, at + "o");
    plan.norm(at + "post_attention_layernorm.weight");
    plan.packable(at + "mlp.dense_h_to_4h", std::int64_t{2} * r.mlp_size, h, at + "up");
    plan.packable(at + "mlp.dense_4h_to_h", h, r.mlp_size, at + "down");
  }
  plan.norm("transformer.encoder.final_layernorm.weight");
  plan.table("transformer.output_layer.weight", r.vocab_size, h, true);
}

value_object make_config(const synth::recipe& r, const synth::vocabulary& ids) {
  value_object c = {
      {"_name_or_path", "THUDM/" + r.preset},
      {"model_type", "chatglm"},
      {"architectures", synth::list_of("ChatGLMModel")},
      {"auto_map",
       value_object{{"AutoConfig", "configuration_chatglm.ChatGLMConfig"},
                    {"AutoModel", "modeling_chatglm.ChatGLMForConditionalGeneration"},
                    {"AutoModelForCausalLM", "modeling_chatglm.ChatGLMForConditionalGeneration"}}},
      {"add_bias_linear", false},
      {"add_qkv_bias", true},
      {"apply_query_key_layer_scaling", true},
      {"apply_residual_connection_post_layernorm", false},
      {"attention_dropout", 0.0},
      {"attention_softmax_in_fp32", true},
      {"bias_dropout_fusion", true},
      {"ffn_hidden_size", r.mlp_size},
      {"fp32_residual_connection", false},
      {"hidden_dropout", 0.0},
      {"hidden_size", r.hidden_size},
      {"kv_channels", r.head_size()},
      {"layernorm_epsilon", r.norm_epsilon},
      {"multi_query_attention", true},
      {"multi_query_group_num", r.n_kv_heads},
      {"num_attention_heads", r.n_heads},
      {"num_layers", r.n_layers},
      {"original_rope", true},
      {"padded_vocab_size", r.vocab_size},
      {"post_layer_norm", true},
      {"rmsnorm", true}};
  if (r.rope_ratio != 1) c.emplace_back("rope_ratio", r.rope_ratio);
  synth::append(c, {{"seq_length", r.context_length},
                    {"use_cache", true},
                    {"torch_dtype", synth::torch_name(r.dtype)},
                    {"transformers_version", "4.30.2"},
                    {"tie_word_embeddings", false},
                    {"eos_token_id", ids.eos},
                    {"pad_token_id", ids.pad}});
  return c;
}

value_object make_generation_config(const synth::recipe&, const synth::vocabulary& ids) {
  return {{"eos_token_id", ids.eos},
          {"pad_token_id", ids.pad},
          {"do_sample", true},
          {"temperature", 0.8},
          {"top_p", 0.8},
          {"transformers_version", "4.30.2"}};
}

constexpr std::pair<std::string_view, std::string_view> gguf_parts[] = {
    {"input_layernorm", "attn_norm"},        {"self_attention.query_key_value", "attn_qkv"},
    {"self_attention.dense", "attn_output"}, {"post_attention_layernorm", "ffn_norm"},
    {"mlp.dense_h_to_4h", "ffn_up"},         {"mlp.dense_4h_to_h", "ffn_down"},
};

constexpr synth::gguf_layout layout = {.architecture = "chatglm",
                                       .embedding = "transformer.embedding.word_embeddings.weight",
                                       .final_norm = "transformer.encoder.final_layernorm.weight",
                                       .head = "transformer.output_layer.weight",
                                       .layers = "transformer.encoder.layers.",
                                       .parts = gguf_parts,
                                       .rotary_share = 2};

constexpr std::string_view options[] = {"rope-ratio"};

constexpr synth::family_recipe recipe = {.add_presets = add_presets,
                                         .plan = plan_tensors,
                                         .config = make_config,
                                         .generation_config = make_generation_config,
                                         .any_head_size = true,
                                         .head_size_multiple = 4,
                                         .options = options,
                                         .gguf = &layout};

} // namespace

extern constinit const family chatglm = {
    .name = "chatglm",
    .architectures = architectures,
    .model_types = model_types,
    .gguf_architectures = gguf_architectures,
    .folder_spec = chatglm_spec,
    .gguf_spec = gguf_chatglm_spec,
    .tokenizer = {.reads_flags = false, .pieces_for_templates = true, .appended = appended},
    .chat = {.of_folder = folder_template, .of_gguf = gguf_template},
    .recipe = &recipe};

} // namespace twill::models::families
