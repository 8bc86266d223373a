#include "models/synth/configs.hpp"

#include "models/synth/vocabulary.hpp"

namespace twill::models::synth {
namespace {

using object = value_object;

const char* torch_name(storage_type t) {
  return t == storage_type::f32 ? "float32" : t == storage_type::f16 ? "float16" : "bfloat16";
}

value list_of(const char* text) {
  return value_list{value(text)};
}

void append(object& to, object more) {
  for (auto& member : more)
    to.push_back(std::move(member));
}

object opt_config(const recipe& r, const vocabulary& ids) {
  return {{"_name_or_path", r.preset},
          {"_remove_final_layer_norm", false},
          {"activation_dropout", 0.0},
          {"activation_function", "relu"},
          {"architectures", list_of("OPTForCausalLM")},
          {"attention_dropout", 0.0},
          {"bos_token_id", ids.bos},
          {"do_layer_norm_before", r.pre_norm},
          {"dropout", 0.1},
          {"eos_token_id", ids.eos},
          {"ffn_dim", r.mlp_size},
          {"hidden_size", r.hidden_size},
          {"init_std", 0.02},
          {"layerdrop", 0.0},
          {"max_position_embeddings", r.context_length},
          {"model_type", "opt"},
          {"num_attention_heads", r.n_heads},
          {"num_hidden_layers", r.n_layers},
          {"pad_token_id", ids.pad},
          {"prefix", "</s>"},
          {"torch_dtype", torch_name(r.dtype)},
          {"transformers_version", "4.21.0.dev0"},
          {"use_cache", true},
          {"vocab_size", r.vocab_size},
          {"word_embed_proj_dim", r.embedding_size()}};
}

/// Llama, Mistral, Qwen2 and Qwen3, whose keys differ little.
object llama_config(const recipe& r, const vocabulary& ids) {
  const bool is_llama = r.family == "llama";
  const bool is_qwen = r.family == "qwen2" || r.family == "qwen3";
  const char* architecture = is_llama                ? "LlamaForCausalLM"
                             : r.family == "mistral" ? "MistralForCausalLM"
                             : r.family == "qwen2"   ? "Qwen2ForCausalLM"
                                                     : "Qwen3ForCausalLM";
  object c;
  if (is_llama) c.emplace_back("_name_or_path", r.preset);
  c.emplace_back("architectures", list_of(architecture));
  if (is_llama || r.family == "qwen3") c.emplace_back("attention_bias", r.attention_bias);
  if (!is_llama) c.emplace_back("attention_dropout", 0.0);
  append(c, {{"bos_token_id", ids.bos}, {"eos_token_id", ids.eos}});
  if (r.head_dim > 0) c.emplace_back("head_dim", r.head_dim);
  append(c, {{"hidden_act", "silu"},
             {"hidden_size", r.hidden_size},
             {"initializer_range", 0.02},
             {"intermediate_size", r.mlp_size},
             {"max_position_embeddings", r.context_length}});
  if (is_qwen) c.emplace_back("max_window_layers", r.n_layers);
  append(c, {{"model_type", r.family},
             {"num_attention_heads", r.n_heads},
             {"num_hidden_layers", r.n_layers},
             {"num_key_value_heads", r.n_kv_heads}});
  if (is_llama) c.emplace_back("pretraining_tp", 1);
  c.emplace_back("rms_norm_eps", r.norm_epsilon);
  if (is_llama || r.family == "qwen3") c.emplace_back("rope_scaling", nullptr);
  c.emplace_back("rope_theta", r.rope_theta);
  if (r.family == "mistral")
    c.emplace_back("sliding_window", r.window > 0 ? value(r.window) : value(nullptr));
  if (is_qwen) c.emplace_back("sliding_window", nullptr);
  append(c, {{"tie_word_embeddings", r.tied_head},
             {"torch_dtype", torch_name(r.dtype)},
             {"transformers_version", r.family == "qwen3" ? "4.51.0" : "4.40.1"},
             {"use_cache", true}});
  if (is_qwen) c.emplace_back("use_sliding_window", false);
  c.emplace_back("vocab_size", r.vocab_size);
  return c;
}

object baichuan_config(const recipe& r, const vocabulary& ids) {
  object c = {
      {"_from_model_config", true},
      {"architectures", list_of("BaichuanForCausalLM")},
      {"auto_map", object{{"AutoConfig", "configuration_baichuan.BaichuanConfig"},
                          {"AutoModelForCausalLM", "modeling_baichuan.BaichuanForCausalLM"}}},
      {"tokenizer_class", "BaichuanTokenizer"},
      {"bos_token_id", ids.bos},
      {"eos_token_id", ids.eos},
      {"hidden_act", "silu"},
      {"hidden_size", r.hidden_size},
      {"initializer_range", 0.02},
      {"intermediate_size", r.mlp_size}};
  // Only the rotary models say how many positions they have: readers take it as the sign of them.
  if (r.alibi)
    c.emplace_back("gradient_checkpointing", false);
  else
    c.emplace_back("max_position_embeddings", r.context_length);
  append(c, {{"model_max_length", r.context_length},
             {"model_type", "baichuan"},
             {"num_attention_heads", r.n_heads},
             {"num_hidden_layers", r.n_layers},
             {"pad_token_id", ids.pad},
             {"rms_norm_eps", r.norm_epsilon},
             {"tie_word_embeddings", false},
             {"torch_dtype", torch_name(r.dtype)},
             {"transformers_version", "4.29.2"},
             {"use_cache", true},
             {"vocab_size", r.vocab_size}});
  return c;
}

object qwen_config(const recipe& r) {
  return {{"architectures", list_of("QWenLMHeadModel")},
          {"attn_dropout_prob", 0.0},
          {"auto_map", object{{"AutoConfig", "configuration_qwen.QWenConfig"},
                              {"AutoModelForCausalLM", "modeling_qwen.QWenLMHeadModel"}}},
          {"bf16", r.dtype == storage_type::bf16},
          {"emb_dropout_prob", 0.0},
          {"fp16", r.dtype == storage_type::f16},
          {"fp32", r.dtype == storage_type::f32},
          {"hidden_size", r.hidden_size},
          {"intermediate_size", 2 * r.mlp_size}, // the config counts both halves
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

object chatglm_config(const recipe& r, const vocabulary& ids) {
  object c = {{"_name_or_path", "THUDM/" + r.preset},
              {"model_type", "chatglm"},
              {"architectures", list_of("ChatGLMModel")},
              {"auto_map", object{{"AutoConfig", "configuration_chatglm.ChatGLMConfig"},
                                  {"AutoModel", "modeling_chatglm.ChatGLMForConditionalGeneration"},
                                  {"AutoModelForCausalLM",
                                   "modeling_chatglm.ChatGLMForConditionalGeneration"}}},
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
  append(c, {{"seq_length", r.context_length},
             {"use_cache", true},
             {"torch_dtype", torch_name(r.dtype)},
             {"transformers_version", "4.30.2"},
             {"tie_word_embeddings", false},
             {"eos_token_id", ids.eos},
             {"pad_token_id", ids.pad}});
  return c;
}

object gptq_body(const recipe& r) {
  return {{"bits", r.bits},
          {"group_size", r.group},
          {"damp_percent", 0.1},
          {"desc_act", r.act_order},
          {"sym", r.symmetric},
          {"true_sequential", true},
          {"model_name_or_path", nullptr},
          {"model_file_base_name", "model"}};
}

} // namespace

value make_config(const recipe& r) {
  const vocabulary ids = special_ids(r);
  object c = r.family == "opt"        ? opt_config(r, ids)
             : r.family == "qwen"     ? qwen_config(r)
             : r.family == "chatglm"  ? chatglm_config(r, ids)
             : r.family == "baichuan" ? baichuan_config(r, ids)
                                      : llama_config(r, ids);
  if (r.packed == packing::gptq) {
    object q = {{"quant_method", "gptq"}};
    append(q, gptq_body(r));
    c.emplace_back("quantization_config", std::move(q));
  } else if (r.packed == packing::awq) {
    c.emplace_back("quantization_config", object{{"quant_method", "awq"},
                                                 {"zero_point", true},
                                                 {"group_size", r.group},
                                                 {"bits", r.bits},
                                                 {"version", "gemm"}});
  }
  return c;
}

std::optional<std::pair<std::string, value>> make_quantization_file(const recipe& r) {
  if (r.packed == packing::gptq) return std::pair("quantize_config.json", value(gptq_body(r)));
  if (r.packed == packing::awq)
    return std::pair("quant_config.json", value(object{{"zero_point", true},
                                                       {"q_group_size", r.group},
                                                       {"w_bit", r.bits},
                                                       {"version", "GEMM"}}));
  return std::nullopt;
}

value make_generation_config(const recipe& r) {
  const vocabulary ids = special_ids(r);
  if (r.family == "baichuan")
    return object{{"pad_token_id", ids.pad},
                  {"bos_token_id", ids.bos},
                  {"eos_token_id", ids.eos},
                  {"user_token_id", 195},
                  {"assistant_token_id", 196},
                  {"max_new_tokens", 2048},
                  {"temperature", 0.3},
                  {"top_k", 5},
                  {"top_p", 0.85},
                  {"repetition_penalty", 1.05},
                  {"do_sample", true},
                  {"transformers_version", "4.29.2"}};
  if (r.family == "qwen")
    return object{{"chat_format", "chatml"},
                  {"eos_token_id", ids.eos},
                  {"pad_token_id", ids.pad},
                  {"max_window_size", 6144},
                  {"max_new_tokens", 512},
                  {"do_sample", true},
                  {"top_k", 0},
                  {"top_p", 0.8},
                  {"repetition_penalty", 1.1},
                  {"transformers_version", "4.31.0"}};
  if (r.family == "chatglm")
    return object{{"eos_token_id", ids.eos},
                  {"pad_token_id", ids.pad},
                  {"do_sample", true},
                  {"temperature", 0.8},
                  {"top_p", 0.8},
                  {"transformers_version", "4.30.2"}};
  object g = {{"_from_model_config", true}, {"bos_token_id", ids.bos}, {"eos_token_id", ids.eos}};
  if (ids.pad >= 0) g.emplace_back("pad_token_id", ids.pad);
  g.emplace_back("transformers_version", "4.36.2");
  return g;
}

} // namespace twill::models::synth
